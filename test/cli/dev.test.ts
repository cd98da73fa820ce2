/** `postern dev` as a developer has it: started, used over HTTP, SMTP and in the browser, stopped, started again. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createTransport } from 'nodemailer';
import { createCli, run } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { listens } from '#lab/load/ports.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { until } from '#lab/until.ts';

async function startDev(t: ExecutionContext, ...args: string[]) {
  return startDevWith(t, {}, ...args);
}

async function startDevWith(t: ExecutionContext, env: Record<string, string>, ...args: string[]) {
  const started = createCli(t, env).start('dev', '--port', '0', '--json', ...args);
  const documents = () =>
    started
      .stdout()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  await until(() => documents().length > 0, { what: () => `its start: ${started.stderr()}` });
  const [server] = documents();
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
    const response = await fetch(server.url + path, { method, headers, body: body && JSON.stringify(body) });
    // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the tests look at
    return { status: response.status, body: (await response.json()) as any };
  };
  const mail = { from: `app@${server.domain}`, subject: 'Welcome', html: '<p>Hello</p>' };
  return {
    ...started,
    server,
    call,
    send: (to: string) => call('POST', '/api/public/email/send', { ...mail, to }),
    /** The events that it has printed about a recipient. */
    printed: (types: string[], to: string) => {
      const found = () =>
        documents()
          .filter(({ recipient }) => recipient === to)
          .map(({ type }) => type);
      return until(() => found().join() === types.join(), { what: () => `${to}: ${found()}` });
    },
  };
}

/** Opens a page as a browser that keeps the cookies of the sign-in link. */
async function openSignedIn(signIn: string, page: string) {
  const entered = await fetch(signIn, { redirect: 'manual' });
  const cookie = entered.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ');
  const response = await fetch(page, { headers: { cookie }, redirect: 'manual' });
  return { status: response.status, text: await response.text() };
}

test('a server for development: recipients as named, webhooks, SMTP, the dashboard; a second run keeps its data', async (t) => {
  const data = join(await temporaryDirectory(t), 'dev');
  const dev = await startDev(t, '--directory', data);
  const { server } = dev;
  const receiver = await startReceiver(t);
  const url = receiver.url.replace('127.0.0.1', 'localhost');
  const hook = await dev.call('POST', '/api/public/webhooks', { url, events: ['email.complained'] });
  t.is(hook.status, 200, JSON.stringify(hook.body));
  receiver.secret = hook.body.secret;

  for (const to of ['ann', 'unknown', 'greylist', 'full', 'complain']) {
    const { status, body } = await dev.send(`${to}@example.org`);
    t.is(status, 200, JSON.stringify(body));
  }
  await dev.printed(['email.queued', 'email.delivered'], 'ann@example.org');
  await dev.printed(['email.queued', 'email.bounced'], 'unknown@example.org');
  await dev.printed(['email.queued', 'email.deferred', 'email.delivered'], 'greylist@example.org');
  await dev.printed(['email.queued', 'email.bounced'], 'full@example.org');
  await dev.printed(['email.queued', 'email.delivered', 'email.complained'], 'complain@example.org');
  const [complaint] = await receiver.received(1);
  t.is(complaint!.body.data.recipient, 'complain@example.org');
  t.is(complaint!.fault, null);

  const listening = createCli(t, { POSTERN_DATA_DIR: data }).start(
    ...['listen', '--forward', url, '--event', 'email.received'],
  );
  await until(() => listening.stderr().includes('forwarding to'), {
    what: () => listening.stderr(),
  });
  t.is((await dev.send('orders+17@received.test')).status, 200);
  await until(() => dev.stdout().includes('"email.received"'), { what: 'the mail that came in' });
  await until(() => receiver.requests.length === 2, { what: () => listening.stderr() });
  t.like(receiver.requests[1]!.body.data, { test: true, recipients: ['orders+17@received.test'] });
  await listening.exit();

  const { host, port, user } = server.smtp;
  const transport = createTransport({ host, port, auth: { user, pass: server.key } });
  await transport.sendMail({ from: `app@${server.domain}`, to: 'smtp@example.org', text: 'By SMTP' });
  await dev.printed(['email.queued', 'email.delivered'], 'smtp@example.org');

  const documents = () =>
    dev
      .stdout()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  const find = (type: string) => documents().find((one) => one.type === type);
  await until(() => find('webhook'), { what: 'the post to the webhook' });
  t.like(find('webhook'), { event: 'email.complained', status: 204, url });
  const mail = { from: `app@${server.domain}`, to: 'ann@example.org', subject: 'x', text: 'x' };
  const post = (body: object) => dev.call('POST', '/api/public/email/send', body);
  t.is((await post({ ...mail, from: 'app@other.invalid' })).status, 403);
  t.regex(
    (await post({ ...mail, reply_to: 'b@example.org' })).body.message,
    /reply_to: unknown member; did you mean replyTo\?$/,
  );
  await until(() => find('refused'), { what: 'the refused send' });
  t.like(find('refused'), { recipient: 'ann@example.org' });
  const many = await post({ ...mail, to: Array.from({ length: 11 }, (_, at) => `many-${at}@example.org`) });
  t.is(many.status, 400);
  const ofMany = () => documents().filter(({ recipient = '' }) => recipient.startsWith('many-'));
  await until(() => ofMany().length > 0, { what: 'the refused send to many' });
  t.deepEqual(
    ofMany().map(({ type, recipient, others }) => [type, recipient, others]),
    [['refused', 'many-0@example.org', 9]],
    'one line for all recipients of a call',
  );
  const headers = { authorization: 'Bearer em_test_of-another-server' };
  t.is((await fetch(`${server.url}/api/public/domains`, { headers })).status, 401);
  await until(() => /401: The API key is not valid.* prints its key/.test(dev.stderr()), {
    what: dev.stderr,
  });
  for (const _ of [1, 2]) t.is((await dev.send('twice@example.org')).status, 200);
  await until(() => find('repeated'), { what: 'the repeat' });
  t.regex(find('repeated').reason, /^a repeat of email \S+ was ignored; nothing was sent or charged$/);

  // A command that names no installation acts on this one in its directory.
  const program = join(import.meta.dirname, '../../src/cli/postern.ts');
  const script = 'cd "$0" && "$1" "$2" logs --status refused';
  const logs = await run('sh', ['-c', script, data, process.execPath, program], { PATH: process.env.PATH });
  t.regex(logs.stdout.toString(), /other\.invalid/);

  const domain = await dev.call('POST', '/api/public/domains', { name: 'other.example' });
  t.is(domain.status, 200, JSON.stringify(domain.body));
  const verified = await dev.call('POST', '/api/public/domains/other.example/verify');
  t.is(verified.body.domain.status, 'verified', 'a domain of the developer needs no public DNS');

  const shown = await openSignedIn(server.signIn, server.inbox);
  t.is(shown.status, 200);
  t.true(shown.text.includes('ann@example.org'));
  t.is(find('email.repeated'), undefined, 'a repeat is one line');
  await dev.exit();

  const again = await startDev(t, '--directory', data);
  t.is(again.server.key, server.key);
  t.true((await openSignedIn(again.server.signIn, again.server.inbox)).text.includes('smtp@example.org'));
  t.is(
    (await fetch(again.server.url + new URL(server.signIn).pathname)).status,
    404,
    'the earlier link ended',
  );
  await again.exit();

  const fresh = await startDev(t, '--directory', data, '--fresh');
  t.not(fresh.server.key, server.key);
  t.false((await openSignedIn(fresh.server.signIn, fresh.server.inbox)).text.includes('smtp@example.org'));
  await fresh.exit();

  const plain = createCli(t, {}).start('dev', '--port', '0', '--directory', data);
  await until(() => /^Mail$/m.test(plain.stdout()), { what: () => plain.stderr() });
  const [, curl] = /^(curl http[\s\S]*?)\n\n/m.exec(plain.stdout())!;
  const answer = await run('sh', ['-c', curl!], process.env);
  t.regex(answer.stdout.toString(), /^{"success":true,/);
  const [, commands] = /^Commands +(cd [\s\S]*?)\n\n/m.exec(plain.stdout())!;
  const [cd, ...others] = commands!.split('\n').map((line) => line.trim());
  const why = others.find((line) => line.includes('email why'))!;
  const explained = await run('sh', ['-c', `${cd}\n${why}`], process.env);
  t.regex(explained.stdout.toString(), /ann@example\.org/, explained.stderr.toString());
  const line = /^\S+Z\tdelivered\tann@example.org\tHello\t\thttp:\/\/127\.0\.0\.1:\d+\/dashboard\/\S+$/m;
  await until(() => line.test(plain.stdout()), { what: plain.stdout });
});

test('a server for development is reached on loopback only, under a name of this machine, whatever the environment says', async (t) => {
  const env = {
    POSTERN_HTTP_HOST: '0.0.0.0',
    POSTERN_SMTP_HOST: '0.0.0.0',
    POSTERN_HTTP_PROXIES: '192.0.2.0/24',
  };
  const dev = await startDevWith(t, env, '--directory', join(await temporaryDirectory(t), 'dev'));
  const { url, smtp } = dev.server;
  const port = Number(new URL(url).port);
  const others = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  for (const { address, internal, family } of others.filter((one) => !one.internal && one.family === 'IPv4'))
    for (const one of [port, smtp.port]) t.false(await listens(address, one), `${family} ${internal}`);
  t.false(await listens('127.0.0.2', port), 'bound to one address');

  const ask = (host: string, path = '/dashboard/sign-in') =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = http.get({ port, host: '127.0.0.1', path, headers: { host }, agent: false });
      request.on('error', reject).on('response', (response) => resolve(response.resume().statusCode));
    });
  const local = [
    'localhost',
    'LOCALHOST.',
    `localhost:${port}`,
    `127.0.0.1:${port}`,
    '127.9.9.9',
    '[::1]:80',
    'app.localhost',
  ];
  for (const host of local) t.is(await ask(host), 200, host);
  const foreign = [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    'notlocalhost',
    '127.0.0.1.evil.example',
    '127.0.0.1@evil.example',
    'evil.example@127.0.0.1',
    '192.0.2.1',
    '0.0.0.0',
    '[::]',
    '[::ffff:192.0.2.1]',
    '[2001:db8::1]',
    'localhost/evil.example',
    'mail.postern.test',
    '%',
  ];
  const paths = [
    '/',
    '/dashboard/sign-in',
    new URL(dev.server.signIn).pathname,
    '/api/public/openapi.json',
    '/docs',
    '/llms.txt',
    '/health/ready',
    '/metrics',
    '/messages',
    '/nothing',
  ];
  for (const host of foreign) t.is(await ask(host), 421, JSON.stringify(host));
  for (const path of paths) t.is(await ask('evil.example', path), 421, path);
  await dev.exit();
});

test('a directory of something else is neither used nor emptied', async (t) => {
  const data = await temporaryDirectory(t);
  await mkdir(join(data, 'kept'));
  await writeFile(join(data, 'kept', 'file'), 'kept');
  const { refusal } = createCli(t, {});
  for (const option of [[], ['--fresh']])
    t.regex(await refusal(1, 'dev', '--directory', data, ...option), /is not a directory of `postern dev`/);
  t.true(existsSync(join(data, 'kept', 'file')));
});
