/**
 * The settings: their defaults, where a value may come from, what each written form means, and what is said of a
 * bad one. A bad configuration is a file NAME.jsonc in fixtures/bad-config with what is said of it in NAME.txt, FILE
 * standing for its path: a new case is a new file.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Config, effectiveConfig, loadConfig, settings } from '../../src/settings/config.ts';
import { ConfigError } from '../../src/settings/config-error.ts';
import { hostnameAdvice } from '../../src/settings/hostname-advice.ts';

const sample = join(import.meta.dirname, '../../config/postern.jsonc');
const badConfigs = join(import.meta.dirname, '../fixtures/bad-config');

function fileOf(t: ExecutionContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-config-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'postern.jsonc');
  writeFileSync(path, text);
  return path;
}

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** What `text` means, from the environment and from a file alike. */
function meaning<K extends keyof Config>(t: ExecutionContext, key: K, name: string, text: string): Config[K] {
  const fromEnvironment = loadConfig({ [name]: text })[key];
  const file = fileOf(t, JSON.stringify({ [name]: text }));
  t.deepEqual(loadConfig({ POSTERN_CONFIG: file })[key], fromEnvironment);
  return fromEnvironment;
}

const hour = 3_600_000;
const minute = 60_000;
const second = 1000;

test('with nothing given, every setting has its default', (t) => {
  const { hostname: ownName, returnPathDomain, ...rest } = loadConfig({ PATH: '/bin', POSTERN: 'no prefix' });
  t.true([hostname().toLowerCase(), 'localhost'].includes(ownName));
  t.is(returnPathDomain, ownName);
  t.deepEqual(rest, {
    dialects: ['resend', 'postmark', 'sendgrid', 'mailgun'],
    dataDir: join(import.meta.dirname, '../../data'),
    databaseUrl: null,
    databaseConnections: 10,
    roles: ['http', 'mta', 'inbound'],
    httpHost: '127.0.0.1',
    httpPort: 8080,
    httpProxies: [],
    httpKeepAlive: 75_000,
    httpConcurrency: 1000,
    minFreeSpace: 100 * 1024 * 1024,
    baseUrl: 'http://127.0.0.1:8080',
    secret: null,
    secretOthers: [],
    dnsServers: [],
    mtaPort: 25,
    mtaAllowPrivate: false,
    mtaRetry: [
      ...[30 * second, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 40 * minute, hour, 2 * hour],
      ...Array<number>(12).fill(4 * hour),
    ],
    mtaMaxAge: 48 * hour,
    mtaConcurrency: 500,
    mtaPerDestination: 20,
    metricsToken: null,
    stopDelay: 0,
    mtaSources: [],
    shapingFile: null,
    mtaTimeouts: {
      connect: 30 * second,
      greeting: minute,
      ehlo: minute,
      tls: 30 * second,
      mail: 2 * minute,
      rcpt: 2 * minute,
      data: 2 * minute,
      dot: 10 * minute,
    },
    suppressAfter: ['unknown_user', 'mailbox_disabled', 'dns'],
    keepMessages: 86_400_000,
    keepEvents: 30 * 86_400_000,
    keepEmails: null,
    idempotencyKeep: 86_400_000,
    creditsLow: 10,
    tlsReports: null,
    unverifiedDomains: 'keep',
    inboundPort: null,
    submissionPort: null,
    submissionTlsPort: null,
    submissionAllowClear: false,
    submissionRecipients: 1000,
    textFromHtml: true,
    smtpHost: null,
    smtpConnections: 1000,
    smtpPerClient: 50,
    smtpProxies: [],
    tlsCert: null,
    tlsKey: null,
    attachmentAllowPrivate: false,
    webhookAllowPrivate: false,
    logLevel: 'info',
    logFormat: process.stdout.isTTY ? 'pretty' : 'json',
  });
});

test('defaults follow the settings they depend on', (t) => {
  const config = loadConfig({
    POSTERN_HTTP_HOST: '::1',
    POSTERN_HTTP_PORT: '0',
    POSTERN_HOSTNAME: 'mx.example.org',
  });
  t.is(config.baseUrl, 'http://[::1]:0');
  t.is(config.returnPathDomain, 'mx.example.org');
});

test('the environment wins over the file, the file over the default', (t) => {
  const POSTERN_CONFIG = fileOf(t, '{ "POSTERN_HTTP_PORT": 1111, "POSTERN_MTA_PORT": 2222, /* why */ }');
  const env = { POSTERN_CONFIG, POSTERN_HTTP_PORT: '3333' };
  const { httpPort, mtaPort, httpHost } = loadConfig(env);
  t.deepEqual({ httpPort, mtaPort, httpHost }, { httpPort: 3333, mtaPort: 2222, httpHost: '127.0.0.1' });
  const source = (name: string) => effectiveConfig(env).find((each) => each.name === name)?.source;
  t.is(source('POSTERN_HTTP_PORT'), 'environment');
  t.is(source('POSTERN_MTA_PORT'), `file ${POSTERN_CONFIG}`);
  t.is(source('POSTERN_HTTP_HOST'), 'default');
});

test('an empty value counts as not given', (t) => {
  const POSTERN_CONFIG = fileOf(t, '{ "POSTERN_HTTP_PORT": 1111, "POSTERN_SECRET": "" }');
  const { httpPort, secret } = loadConfig({ POSTERN_CONFIG, POSTERN_HTTP_PORT: '' });
  t.is(httpPort, 1111);
  t.is(secret, null);
  t.is(loadConfig({ POSTERN_CONFIG: '' }).httpPort, 8080);
});

test('in a file, values may be numbers, booleans and lists of words', (t) => {
  const POSTERN_CONFIG = fileOf(
    t,
    `\uFEFF{
      "POSTERN_HTTP_PORT": 0,
      "POSTERN_MTA_ALLOW_PRIVATE": true,
      "POSTERN_INBOUND_PORT": "off",
      "POSTERN_DNS_SERVERS": ["127.0.0.1:5353", "::1"],
      "POSTERN_MTA_RETRY": ["1s", "2s*2"],
      "POSTERN_MTA_TIMEOUTS": ["connect=5s", "dot=1m"]
    }`,
  );
  const config = loadConfig({ POSTERN_CONFIG });
  t.is(config.httpPort, 0);
  t.true(config.mtaAllowPrivate);
  t.is(config.inboundPort, null);
  t.deepEqual(config.dnsServers, ['127.0.0.1:5353', '[::1]:53']);
  t.deepEqual(config.mtaRetry, [1000, 2000, 2000]);
  t.like(config.mtaTimeouts, { connect: 5000, dot: minute, mail: 2 * minute });
});

test('durations have a unit', (t) => {
  const maxAge = (text: string) => meaning(t, 'mtaMaxAge', 'POSTERN_MTA_MAX_AGE', text);
  t.is(maxAge('500ms'), 500);
  t.is(maxAge('90s'), 90 * second);
  t.is(maxAge('1.5h'), 90 * minute);
  t.is(maxAge(' 2D '), 48 * hour);
});

test('emails are kept for good, or for as long as anything tells of them', (t) => {
  const keep = (text: string) => meaning(t, 'keepEmails', 'POSTERN_KEEP_EMAILS', text);
  t.is(keep('730d'), 730 * 24 * hour);
  t.is(keep('30d'), 30 * 24 * hour);
  const refusal = (settings: Record<string, string>) => t.throws(() => loadConfig(settings))?.message;
  t.is(
    refusal({ POSTERN_KEEP_EMAILS: '7d' }),
    'POSTERN_KEEP_EMAILS: "168h" is less than POSTERN_KEEP_EVENTS (720h), and what is kept that long refers to its email; give a time at least as long',
  );
  t.regex(
    refusal({ POSTERN_KEEP_EMAILS: '40d', POSTERN_IDEMPOTENCY_KEEP: '41d' })!,
    /POSTERN_IDEMPOTENCY_KEEP/,
  );
  t.regex(refusal({ POSTERN_KEEP_EMAILS: '3651d' })!, /up to 3650d/);
});

test('retry waits are durations, repeated with a star, parted by spaces or commas', (t) => {
  const waits = (text: string) => meaning(t, 'mtaRetry', 'POSTERN_MTA_RETRY', text);
  t.deepEqual(waits('1s'), [1000]);
  t.deepEqual(waits('100ms*3, 1m  2m'), [100, 100, 100, minute, 2 * minute]);
});

test('timeouts left out keep their defaults', (t) => {
  const patience = (text: string) => meaning(t, 'mtaTimeouts', 'POSTERN_MTA_TIMEOUTS', text);
  const fallback = loadConfig({}).mtaTimeouts;
  t.deepEqual(patience('dot=5m'), { ...fallback, dot: 5 * minute });
  t.deepEqual(patience('connect=200ms,Greeting=1s'), { ...fallback, connect: 200, greeting: 1000 });
  t.deepEqual(loadConfig({}).mtaTimeouts, fallback);
});

test('DNS servers are addresses, on port 53 unless they say another', (t) => {
  const servers = (text: string) => meaning(t, 'dnsServers', 'POSTERN_DNS_SERVERS', text);
  t.deepEqual(servers('127.0.0.1:5353'), ['127.0.0.1:5353']);
  t.deepEqual(servers('192.0.2.1, 2001:db8::1'), ['192.0.2.1:53', '[2001:db8::1]:53']);
  t.deepEqual(servers('[::1]:5353 [::1] localhost:1'), ['[::1]:5353', '[::1]:53', '127.0.0.1:1']);
});

for (const server of ['256.0.0.1', '1.2.3.4:0', '1.2.3.4:65536', '[1.2.3.4]:53', '[::1]x', ':53', 'a:b:c']) {
  test(`${server} is no DNS server`, (t) => {
    t.regex(faultsOf({ POSTERN_DNS_SERVERS: server }).join(), /is not a DNS server/);
  });
}

test('source addresses may say their names', (t) => {
  const sources = (text: string) => meaning(t, 'mtaSources', 'POSTERN_MTA_SOURCES', text);
  t.deepEqual(sources('192.0.2.10'), [{ address: '192.0.2.10', name: null, pool: 'default' }]);
  t.deepEqual(sources('192.0.2.10=Mail1.Example.org., 2001:db8::10=mail2.example.org 2001:db8::11'), [
    { address: '192.0.2.10', name: 'mail1.example.org', pool: 'default' },
    { address: '2001:db8::10', name: 'mail2.example.org', pool: 'default' },
    { address: '2001:db8::11', name: null, pool: 'default' },
  ]);
});

test('source addresses may say their pool, behind all else', (t) => {
  const sources = (text: string) => meaning(t, 'mtaSources', 'POSTERN_MTA_SOURCES', text);
  t.deepEqual(sources('192.0.2.10=mail1.example.org@Bulk 2001:db8::10@transactional-2, 192.0.2.11@default'), [
    { address: '192.0.2.10', name: 'mail1.example.org', pool: 'bulk' },
    { address: '2001:db8::10', name: null, pool: 'transactional-2' },
    { address: '192.0.2.11', name: null, pool: 'default' },
  ]);
});

test('names are lower case A-labels without the final dot', (t) => {
  const name = (text: string) => meaning(t, 'hostname', 'POSTERN_HOSTNAME', text);
  t.is(name('MX.Example.ORG.'), 'mx.example.org');
  t.is(name('post.bücher.example'), 'post.xn--bcher-kva.example');
});

for (const name of [
  '-a.example',
  'a..example',
  'a_b.example',
  'exa%6dple.org',
  'mail.1',
  `${'a'.repeat(64)}.org`,
]) {
  test(`${name} is no domain name`, (t) => {
    t.regex(faultsOf({ POSTERN_HOSTNAME: name }).join(), /is not a domain name/);
  });
}

test('the base URL loses its last slash, and has no path', (t) => {
  const url = (text: string) => meaning(t, 'baseUrl', 'POSTERN_BASE_URL', text);
  t.is(url('https://mail.example.org/'), 'https://mail.example.org');
  t.is(url('http://Example.org:8080//'), 'http://example.org:8080');
  t.regex(faultsOf({ POSTERN_BASE_URL: 'https://example.org/postern' }).join(), /without a path/);
  t.is(url('https://example.org:443'), 'https://example.org');
});

test('ports that can be off, switches and choices', (t) => {
  t.is(meaning(t, 'inboundPort', 'POSTERN_INBOUND_PORT', '25'), 25);
  t.is(meaning(t, 'submissionPort', 'POSTERN_SUBMISSION_PORT', 'OFF'), null);
  for (const yes of ['true', 'Yes', 'on', '1']) {
    t.true(meaning(t, 'mtaAllowPrivate', 'POSTERN_MTA_ALLOW_PRIVATE', yes));
  }
  for (const no of ['false', 'no', 'Off', '0']) {
    t.false(meaning(t, 'webhookAllowPrivate', 'POSTERN_WEBHOOK_ALLOW_PRIVATE', no));
  }
  t.is(meaning(t, 'logLevel', 'POSTERN_LOG_LEVEL', 'WARN'), 'warn');
  t.is(meaning(t, 'logFormat', 'POSTERN_LOG_FORMAT', 'pretty'), 'pretty');
});

test('the bounces that suppress are a list of categories, or off', (t) => {
  const categories = (text: string) => meaning(t, 'suppressAfter', 'POSTERN_SUPPRESS_AFTER', text);
  t.deepEqual(categories('DNS, unknown_user dns'), ['dns', 'unknown_user']);
  t.deepEqual(categories('Off'), []);
  const printed = effectiveConfig({ POSTERN_SUPPRESS_AFTER: 'off' });
  t.like(
    printed.find(({ name }) => name === 'POSTERN_SUPPRESS_AFTER'),
    { value: 'off', source: 'environment' },
  );
});

for (const file of readdirSync(badConfigs).filter((each) => each.endsWith('.jsonc'))) {
  test(`bad configuration: ${basename(file, '.jsonc')}`, (t) => {
    const path = join(badConfigs, file);
    const said = faultsOf({ POSTERN_CONFIG: path }).join('\n').replaceAll(path, 'FILE');
    t.is(`${said}\n`, readFileSync(path.replace(/jsonc$/, 'txt'), 'utf8'));
  });
}

test('every bad value is reported at once, one line each, from wherever it came', (t) => {
  const POSTERN_CONFIG = fileOf(t, '{\n"POSTERN_MTA_PORT": "smtp"\n}');
  const error = t.throws(
    () => loadConfig({ POSTERN_CONFIG, POSTERN_HTTP_PORT: '80x', POSTERN_HTTP_PROT: '8080' }),
    { instanceOf: ConfigError },
  );
  t.deepEqual(error?.message.split('\n'), [
    'POSTERN_HTTP_PROT: no such setting; did you mean POSTERN_HTTP_PORT?',
    'POSTERN_HTTP_PORT: "80x" is not a port; give a whole number from 0 to 65535',
    `POSTERN_MTA_PORT: "smtp" is not a port; give a whole number from 1 to 65535 (${POSTERN_CONFIG}, line 2)`,
  ]);
});

test('a file that cannot be read is named with the reason', (t) => {
  t.deepEqual(faultsOf({ POSTERN_CONFIG: '/nowhere/postern.jsonc' }), [
    'POSTERN_CONFIG: cannot read /nowhere/postern.jsonc (ENOENT: no such file or directory); ' +
      'name a file that can be read, or unset it',
  ]);
});

test('no secret and no password is printed, be it good or bad', (t) => {
  const env = { POSTERN_SECRET: 'open-sesame-open-sesame', POSTERN_DATABASE_URL: '' };
  for (const url of [
    'postgres://ali:open-sesame@db.example.org:5432/postern',
    'postgresql://ali:open@sesame@db.example.org/postern',
    'postgres://db.example.org/postern?user=ali&password=open-sesame',
    'postgres://ali:open/sesame@db.example.org/postern',
    'mysql://ali:open-sesame@db.example.org/postern',
  ]) {
    const given = { ...env, POSTERN_DATABASE_URL: url };
    const faults = faultsOf(given);
    const printed = faults.length > 0 ? faults.join() : JSON.stringify(effectiveConfig(given));
    t.notRegex(printed, /sesame/, url);
  }
  const printed = new Map(
    effectiveConfig({
      ...env,
      POSTERN_DATABASE_URL: 'postgres://ali:open-sesame@db.example.org/postern',
    }).map(({ name, value }) => [name, value]),
  );
  t.is(printed.get('POSTERN_SECRET'), '***');
  t.is(printed.get('POSTERN_DATABASE_URL'), 'postgres://ali:***@db.example.org/postern');
  t.notRegex(faultsOf({ POSTERN_SECRET: 'open-sesame' }).join(), /sesame/);
});

test('settings that are printed read back the same', (t) => {
  const given = {
    POSTERN_MTA_RETRY: '1500ms 90s*2 1d 4h*3',
    POSTERN_MTA_TIMEOUTS: 'connect=1.5s',
    POSTERN_MTA_MAX_AGE: '100m',
    POSTERN_DNS_SERVERS: '::1,127.0.0.1:5353',
    POSTERN_MTA_SOURCES: '192.0.2.10=mail1.example.org@bulk,2001:db8::10@bulk 192.0.2.11',
    POSTERN_INBOUND_PORT: '25',
    POSTERN_HOSTNAME: 'mx.example.org',
    POSTERN_MTA_ALLOW_PRIVATE: 'yes',
  };
  const printed = effectiveConfig(given).filter(({ name }) => name in given);
  t.is(printed.length, Object.keys(given).length);
  t.is(printed.find(({ name }) => name === 'POSTERN_MTA_RETRY')?.value, '1500ms 90s*2 24h 4h*3');
  t.deepEqual(
    loadConfig(Object.fromEntries(printed.map(({ name, value }) => [name, value]))),
    loadConfig(given),
  );
});

test('settings without a value are printed in words', (t) => {
  const printed = new Map(effectiveConfig({}).map(({ name, value }) => [name, value]));
  t.is(printed.get('POSTERN_DATABASE_URL'), 'SQLite in the data directory');
  t.is(printed.get('POSTERN_DNS_SERVERS'), "the system's");
  t.is(printed.get('POSTERN_INBOUND_PORT'), 'off');
  t.is(printed.get('POSTERN_BASE_URL'), 'http://127.0.0.1:8080');
});

test('the sample as it stands changes nothing', (t) => {
  t.deepEqual(loadConfig({ POSTERN_CONFIG: sample }), loadConfig({}));
});

test('every line of the sample can be used; the secret must be changed first', (t) => {
  const text = readFileSync(sample, 'utf8').replaceAll(/^ *\/\/(?=")/gm, '');
  for (const { name } of settings) t.true(text.includes(`\n"${name}": `), name);
  const faults = faultsOf({ POSTERN_CONFIG: fileOf(t, text) });
  t.is(faults.length, 1);
  t.regex(faults[0] ?? '', /^POSTERN_SECRET: the value is too short/);
  const changed = fileOf(t, text.replace('CHANGE-ME', 'sixteen characters'));
  t.is(loadConfig({ POSTERN_CONFIG: changed }).secret, 'sixteen characters');
});

test('a hostname that nobody else can look up has a warning, a public one has none', (t) => {
  t.regex(hostnameAdvice({ hostname: 'vm' })!, /^POSTERN_HOSTNAME is "vm", .*set it to/);
  t.is(hostnameAdvice({ hostname: 'mail.example.com' }), null);
});
