/**
 * `postern init` without root: the settings file that POSTERN_ENV_FILE names, a server that is started as init says, DNS records
 * published as init printed them, and a first mail to a mail host of the test.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { startAuthority } from '#lab/certificates/authority.ts';
import { createCli, postern } from '#lab/cli.ts';
import { type Dns, startDns, type Zone } from '#lab/dns/dns.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { freePort } from '#lab/load/ports.ts';
import { startMxs } from '#lab/mx/mx.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { spawnTerminal } from '#lab/terminal.ts';
import { until } from '#lab/until.ts';

/** Each scene is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

const hostname = 'mail.example.org';
const given = '--hostname mail.example.org --domain example.com --email ann@example.org';

/** The outside world has nothing of the server's records yet. */
function worldWithout(port25 = true): Zone {
  const probes = ['gmail.com', 'outlook.com', 'yahoo.com', 'icloud.com'];
  return {
    ...Object.fromEntries(probes.map((name) => [name, { MX: ['10 in.big.invalid'] }])),
    'in.big.invalid': { A: [port25 ? '127.0.0.2' : '127.0.0.9'] },
    'there.invalid': { MX: ['10 mx.there.invalid'] },
    'mx.there.invalid': { A: ['127.0.0.2'] },
  };
}

async function startScene(t: ExecutionContext, { port25 = true } = {}) {
  const directoryOf = await temporaryDirectory(t);
  const file = join(directoryOf, 'etc/postern.env');
  const dns = await startDns(worldWithout(port25));
  t.teardown(() => dns.close());
  const [mx] = await startMxs(['127.0.0.2'], { script: { ehlo: () => '250 at your service, [127.0.0.1]' } });
  t.teardown(() => mx!.close());
  const [httpPort, tlsPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
  const authority = await startAuthority(t, { httpPort, tlsPort });
  const settings = {
    POSTERN_ENV_FILE: file,
    POSTERN_DATA_DIR: join(directoryOf, 'data'),
    POSTERN_HOSTNAME: '',
    ...authority.settings,
    // init writes it.
    POSTERN_ACME: '',
    POSTERN_ACME_HTTP_PORT: String(httpPort),
    POSTERN_ACME_HTTPS_PORT: String(tlsPort),
    POSTERN_ACME_HOST: '127.0.0.1',
    POSTERN_HTTP_PORT: String(await freePort('127.0.0.1')),
    POSTERN_INBOUND_PORT: String(await freePort('127.0.0.1')),
    POSTERN_SMTP_HOST: '127.0.0.1',
    POSTERN_DNS_SERVERS: dns.address,
    POSTERN_MTA_PORT: String(mx!.port),
    POSTERN_MTA_ALLOW_PRIVATE: 'true',
  };
  const startServer = async () => {
    const server = await startProcess(settings);
    t.teardown(() => server.end('SIGKILL'));
    return server;
  };
  return { ...createCli(t, settings), file, dns, mx: mx!, settings, startServer };
}

/** Gives the DNS of the test what a zone file says, beside what it has; returns the number of records. */
function publish(dns: Dns, zone: string): number {
  const lines = [...zone.matchAll(/^(\S+)\. 3600 IN (\w+) (.+)$/gm)];
  const names = Map.groupBy(lines, ([, name]) => name!);
  for (const [name, all] of names) {
    const types = Map.groupBy(all, ([, , type]) => type!);
    const entry = [...types].map(([type, each]) => [type, each.map(([, , , data]) => valueIn(type, data!))]);
    dns.set({ [name]: Object.fromEntries(entry) });
  }
  return lines.length;
}

function valueIn(type: string, data: string): string {
  if (type !== 'TXT') return data.replace(/\.$/, '');
  return [...data.matchAll(/"([^"]*)"/g)].map(([, text]) => text).join('');
}

test('from nothing to the first mail, with what is missing on the way; a second run changes nothing', async (t) => {
  const { start, json, refusal, file, dns, mx, startServer } = await startScene(t);
  const first = start(...`init ${given} --to ann@there.invalid --org Acme`.split(' '));
  await until(() => existsSync(file), { what: 'the settings file' });
  t.is((await stat(file)).mode & 0o777, 0o600);
  t.regex(
    await readFile(file, 'utf8'),
    /^# .+\nPOSTERN_HOSTNAME=mail\.example\.org\nPOSTERN_ACME=ann@example\.org\n$/,
  );
  await startServer();
  await until(() => /_domainkey/.test(first.stdout()), { what: () => first.stdout() + first.stderr() });
  t.is(mx.messages.length, 0, 'nothing is sent before the domain is verified');
  t.true(publish(dns, first.stdout()) >= 6);
  const { code, stdout, stderr } = await first.ended;
  t.regex(stderr.toString(), /^postern: no server runs yet; start it with [^\n]+\n$/);
  const printed = stdout.toString();
  t.regex(printed, /^ok\tinit\tcreate an API key\tem_\S+ \(shown only this time\)/m);
  t.regex(
    printed,
    /^ok\tinit\tinvite the operator\t.*https:\/\/mail\.example\.org:\d+\/dashboard\/welcome\/\S+/m,
  );
  t.regex(printed, /^ok\tinit\tfind the DNS records\tall \d+ are there/m);
  t.regex(printed, /^ok\tinit\tobtain the certificate\tvalid until \d{4}-/m);
  t.regex(printed, /^ok\tinit\tsend a mail to ann@there\.invalid\t/m);
  t.is(code, 0, printed);
  t.regex(
    printed,
    /^warning\tinit\tmail problems to you\twrote POSTERN_NOTICES_FROM=.+\trestart the server/m,
  );
  t.regex(await readFile(file, 'utf8'), /\nPOSTERN_NOTICES_FROM=postern@example\.com\n$/);
  t.is(mx.messages.length, 1);
  t.regex(mx.messages[0]!.raw.toString(), /^DKIM-Signature: .*d=example\.com;/ms);

  const before = await readFile(file, 'utf8');
  const again = await json(`init ${given} --to ann@there.invalid`);
  t.true(again.ok);
  const done = again.steps.filter(({ step }: { step: string }) => step !== 'invite the operator');
  t.true(done.every(({ verdict }: { verdict: string }) => verdict === 'ok'));
  t.is(await readFile(file, 'utf8'), before);
  t.is(mx.messages.length, 1);
  t.is((await json('key list')).length, 1);
  t.regex(
    await refusal(1, 'init --hostname mx.example.org --dry-run'),
    /says POSTERN_HOSTNAME=mail\.example\.org, not mx\.example\.org, and mail was sent by that name; give --host/,
  );
  const asked = await json('init --dry-run');
  t.is(asked.domain, 'example.com', 'the domain is the one that is registered');
  t.is((await json('org list')).length, 1);
  t.regex(again.operator.url, /welcome/, 'until the operator has a password, the link is made again');
});

test('a dry run shows what there is to do and does nothing of it', async (t) => {
  const { json, file } = await startScene(t);
  const plan = await json(`init ${given} --dry-run`);
  t.deepEqual(
    plan.steps.map(({ step, found }: { step: string; found: string }) => `${step}: ${found}`).slice(0, 2),
    [
      `write the settings: to do: POSTERN_HOSTNAME=${hostname}, POSTERN_ACME=ann@example.org in ${file}`,
      'wait for the server: to do',
    ],
  );
  t.regex(plan.zone, /^mail\.example\.org\. 3600 IN A 127\.0\.0\.1$/m);
  t.false(existsSync(file));
});

test('what is missing or not right is one sentence with the cure, and nothing is written', async (t) => {
  const { refusal, file } = await startScene(t);
  t.regex(
    await refusal(2, 'init --hostname mail.example.org --domain example.com'),
    /give --email \(your mail address, to sign in/,
  );
  t.regex(
    await refusal(2, 'init --hostname mail --domain example.com --email ann@example.org'),
    /"mail" is not a domain name/,
  );
  t.regex(await refusal(2, `init ${given} --to nobody`), /"nobody" is not an email address/);
  t.false(existsSync(file));
  await mkdir(dirname(file));
  await writeFile(file, 'POSTERN_HOSTNAME\n');
  t.regex(await refusal(1, `init ${given}`), /is not NAME=VALUE.* line 1\)/);
  t.is(await readFile(file, 'utf8'), 'POSTERN_HOSTNAME\n');
});

test('the name of the server can be changed until mail is sent by it, and the zones are looked up first', async (t) => {
  const { cli, json, file, dns } = await startScene(t);
  dns.set({ 'www.example.org': { A: ['127.0.0.8'] } });
  const before = '# mine\nPOSTERN_HOSTNAME=mail.exmaple.org\nPOSTERN_LOG_LEVEL=warn';
  await mkdir(dirname(file));
  await writeFile(file, before);
  const plan = await json(`init ${given} --dry-run`);
  const zones = plan.checks.filter(({ check }: { check: string }) => check === 'zone');
  t.deepEqual(
    zones.map(({ subject, verdict }: { subject: string; verdict: string }) => `${subject} ${verdict}`),
    ['example.org ok', 'example.com warning'],
  );
  t.regex(plan.steps[0].found, /^to do: POSTERN_HOSTNAME=mail\.example\.org, /);
  t.is(await readFile(file, 'utf8'), before);
  t.is((await cli(`init ${given} --wait 1s`)).code, 1, 'no server runs');
  t.is(
    await readFile(file, 'utf8'),
    '# mine\nPOSTERN_HOSTNAME=mail.example.org\nPOSTERN_LOG_LEVEL=warn\nPOSTERN_ACME=ann@example.org\n',
  );
});

test('port 25 shut, another program on a port, no server: each with its cure, and what can be done is done', async (t) => {
  const { cli, settings, file } = await startScene(t, { port25: false });
  const other = createServer().listen(Number(settings.POSTERN_INBOUND_PORT), '127.0.0.1');
  t.teardown(() => other.close());
  const { code, stdout } = await cli(`init ${given} --to ann@there.invalid --wait 1s --json`);
  const { ok, checks, steps } = JSON.parse(stdout.toString());
  t.deepEqual([code, ok], [1, false]);
  const check = (name: string) => checks.find((one: { check: string }) => one.check === name);
  t.like(check('port 25'), { verdict: 'failure' });
  t.regex(check('port 25').advice, /^ask the provider of this server to open outbound TCP port 25/);
  t.regex(
    check('free ports').found,
    new RegExp(`another program listens on port ${settings.POSTERN_INBOUND_PORT}`),
  );
  t.deepEqual(
    steps.map(({ step, verdict }: { step: string; verdict: string }) => [step, verdict]).slice(0, 3),
    [
      ['write the settings', 'ok'],
      ['wait for the server', 'failure'],
      ['create the organization', 'skipped'],
    ],
  );
  t.regex(steps[1].advice, /^start it with POSTERN_\S+ .*scripts\/start$/);
  t.is(steps[2].found, 'not tried: it needs "wait for the server"');
  t.true(existsSync(file));
});

test('questions at a terminal: a bad answer is asked again, names are shown as DNS has them, and Ctrl-C says how to go on', async (t) => {
  const { env, file, dns } = await startScene(t);
  const run = () => {
    const { press, shown } = spawnTerminal(t, `"${postern}" init --to ann@there.invalid`, { ...env }, '/');
    const shows = (text: string) =>
      until(() => shown().includes(text), { what: () => `${text} in ${shown()}` });
    return { press, shown, shows };
  };
  const answer = async ({ press, shows }: ReturnType<typeof run>) => {
    await shows('Public name of this server');
    press('mail\n');
    await shows('"mail" is not a domain name');
    press('mail.example.org\n');
    await shows('[example.org]: ');
    press('\n');
    await shows('Your mail address');
    press('ann@example.org\n');
  };
  const first = run();
  await answer(first);
  await first.shows('DNS: example.org: does not exist in DNS');
  await first.shows('[y/N]');
  first.press('\n');
  await first.shows('nothing was changed');
  t.false(existsSync(file), 'a name that was mistyped is in a zone that does not exist');

  dns.set({ 'mail.example.org': { A: ['127.0.0.1'] } });
  const second = run();
  const { press, shown, shows } = second;
  await answer(second);
  await shows('DNS: mail.example.org: 127.0.0.1');
  await shows('[Y/n]');
  press('\n');
  await shows('for the server');
  t.regex(shown(), /no server runs yet; start it with/);
  press('\x03');
  await shows('changes nothing');
  t.regex(shown(), /postern init --hostname mail\.example\.org --domain example\.org --email/);
  t.is(await readFile(file, 'utf8').then((text) => text.split('\n').length), 4);
});
