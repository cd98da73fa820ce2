/**
 * The settings: their defaults, where a value may come from, what each written form means, and what is said of a
 * bad one. A bad configuration is a file NAME.jsonc in fixtures/bad-config with what is said of it in NAME.txt, FILE
 * standing for its path: a new case is a new file.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { table } from '#lab/table.ts';
import { type Config, effectiveConfig, loadConfig, settings } from '#platform/settings/config.ts';
import { ConfigError } from '#platform/settings/config-error.ts';
import { hostnameAdvice } from '#platform/settings/hostname-advice.ts';

const sample = join(import.meta.dirname, '../../../config/postern.jsonc');
const badConfigs = join(import.meta.dirname, '../../fixtures/bad-config');

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

test('a duration may be written out; its unit is required', (t) => {
  const read = (POSTERN_MTA_MAX_AGE: string) => loadConfig({ POSTERN_MTA_MAX_AGE }).mtaMaxAge;
  for (const text of ['48h', '48 h', '48 hours', '2 Days', '2880minutes'])
    t.is(read(text), 172_800_000, text);
  for (const text of ['48', '48  hours', '48 fortnights', 'one day'])
    t.regex(faultsOf({ POSTERN_MTA_MAX_AGE: text }).join(), /is not a duration/, text);
});

test('with nothing given, every setting has its default', (t) => {
  const config = loadConfig({ PATH: '/bin', POSTERN: 'no prefix' });
  const { hostname: ownName, returnPathDomain, dataDir, logFormat, ...rest } = config;
  t.true([hostname().toLowerCase(), 'localhost'].includes(ownName));
  t.is(returnPathDomain, ownName);
  t.is(dataDir, join(import.meta.dirname, '../../../data'));
  t.is(logFormat, process.stdout.isTTY ? 'pretty' : 'json');
  t.deepEqual(rest as object, Object.fromEntries(table<[string, unknown]>('settings/defaults')));
});

test('defaults follow the settings they depend on', (t) => {
  const config = loadConfig({
    POSTERN_HTTP_HOST: '::1',
    POSTERN_HTTP_PORT: '0',
    POSTERN_HOSTNAME: 'mx.example.org',
  });
  t.is(config.baseUrl, 'http://[::1]:0');
  t.is(config.returnPathDomain, 'mx.example.org');
  const acme = { POSTERN_ACME: 'admin@example.org', POSTERN_HOSTNAME: 'mx.example.org' };
  t.is(loadConfig(acme).baseUrl, 'https://mx.example.org');
  t.is(loadConfig({ ...acme, POSTERN_ACME_HTTPS_PORT: '8443' }).baseUrl, 'https://mx.example.org:8443');
  t.is(loadConfig({ ...acme, POSTERN_ACME_HTTPS_PORT: 'off' }).baseUrl, 'http://127.0.0.1:8080');
  const off = { ...acme, POSTERN_ACME_HTTPS_PORT: 'off', POSTERN_ACME_HTTP_PORT: 'off' };
  t.regex(faultsOf(off).join(), /^POSTERN_ACME: the authority asks at .* both are off; give one of them$/);
});

test('the pool for mail over the allowance of new addresses must have an address', (t) => {
  const given = { POSTERN_MTA_SOURCES: '192.0.2.1@bulk', POSTERN_WARM_UP: '@bulk' };
  t.deepEqual(loadConfig(given).warmUp, { pool: 'bulk' });
  t.deepEqual(faultsOf({ ...given, POSTERN_WARM_UP: '@default' }), [
    'POSTERN_WARM_UP: "@default" is a pool that POSTERN_MTA_SOURCES has no address of; give @bulk, or wait',
  ]);
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
  t.like(config.mtaTimeouts, { connect: 5000, dot: 60_000, mail: 120_000 });
});

for (const [name, key, text, value] of table<[string, keyof Config, string, unknown]>('settings/meanings')) {
  test(`${name}=${text} means ${JSON.stringify(value)}`, (t) => {
    t.deepEqual(loadConfig({ [name]: text })[key] as unknown, value);
    const POSTERN_CONFIG = fileOf(t, JSON.stringify({ [name]: text }));
    t.deepEqual(loadConfig({ POSTERN_CONFIG })[key] as unknown, value);
  });
}

for (const [name, text, said] of table<[string, string, string]>('settings/refused')) {
  test(`${name}=${text} is refused`, (t) =>
    t.true(
      faultsOf({ [name]: text })
        .join()
        .includes(said),
    ));
}

test('emails are kept at least as long as anything tells of them', (t) => {
  const faults = faultsOf({ POSTERN_KEEP_EMAILS: '40d', POSTERN_IDEMPOTENCY_KEEP: '41d' });
  t.regex(faults.join(), /POSTERN_IDEMPOTENCY_KEEP/);
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

test('garethgeorge/backrest#885: variables that Kubernetes sets for a Service of our name are not settings', (t) => {
  const links = {
    POSTERN_SERVICE_HOST: '10.96.0.1',
    POSTERN_SERVICE_PORT: '8080',
    POSTERN_SERVICE_PORT_HTTP: '8080',
    POSTERN_PORT: 'tcp://10.96.0.1:8080',
    POSTERN_PORT_8080_TCP: 'tcp://10.96.0.1:8080',
    POSTERN_PORT_8080_TCP_PROTO: 'tcp',
    POSTERN_PORT_8080_TCP_ADDR: '10.96.0.1',
    POSTERN_HTTP_PORT: 'tcp://10.96.0.2:80',
  };
  t.is(loadConfig(links).httpPort, 8080);
  t.deepEqual(faultsOf({ POSTERN_PORT: '8080' }), [
    'POSTERN_PORT: no such setting; docs/settings.md lists all settings',
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
    POSTERN_SUPPRESS_AFTER: 'off',
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
