/**
 * The fake MX against real clients: nodemailer's SMTP connection for what a sane client sees, and a bare socket for
 * bytes that no sane client sends.
 */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { dkimSign } from 'mailauth';
import SmtpConnection, {
  type SMTPConnectionOptions,
  type SMTPEnvelope,
} from 'nodemailer/lib/smtp-connection';
import { verifyDkim } from '../dkim.ts';
import { startDns } from '../dns/dns.ts';
import { until } from '../until.ts';
import { type Mx, type MxOptions, mxPem, startMx, startMxs } from './mx.ts';

async function start(t: ExecutionContext, options?: MxOptions): Promise<Mx> {
  const mx = await startMx(options);
  t.teardown(mx.close);
  return mx;
}

type ClientOptions = SMTPConnectionOptions & { port: number };

async function connect(t: ExecutionContext, { host, port }: Mx, options: Partial<ClientOptions> = {}) {
  const trust = { ca: mxPem, servername: 'mx.invalid' };
  const client = new SmtpConnection({
    host,
    port,
    name: 'client.invalid',
    tls: trust,
    socketTimeout: 300,
    ...options,
  });
  t.teardown(() => client.close());
  await new Promise<void>((resolve, reject) => {
    client.on('error', reject);
    client.connect((error) => (error ? reject(error) : resolve()));
  });
  return {
    send: (envelope: SMTPEnvelope, message: string) =>
      new Promise<{ response: string; rejected: string[] }>((resolve, reject) => {
        client.send(envelope, message, (error, info) => (error ? reject(error) : resolve(info as never)));
      }),
    quit: () => client.quit(),
  };
}

/** One message to one recipient on a connection of its own; what the server said to it. */
async function deliver(
  t: ExecutionContext,
  mx: Mx,
  to: string,
  options?: Partial<ClientOptions>,
): Promise<string> {
  const client = await connect(t, mx, options);
  const { response } = await client.send(
    { from: 'sender@example.invalid', to },
    'Subject: hello\r\n\r\nhello\r\n',
  );
  client.quit();
  return response;
}

/** Sends all the bytes at once and reads until the server ends the connection. */
async function dialogue(mx: Mx, bytes: string): Promise<string[]> {
  const socket = net.connect(mx.port, mx.host);
  await once(socket, 'connect');
  socket.write(bytes);
  return (await text(socket)).split('\r\n').slice(0, -1);
}

test('a message arrives over TLS, byte for byte, with its envelope', async (t) => {
  const mx = await start(t);
  const client = await connect(t, mx);
  const raw = 'Subject: dots\r\n\r\n.\r\n..two\r\n.one\r\nå end\r\n';
  const envelope = {
    from: 'a@example.invalid',
    to: ['b@x.invalid', 'c@x.invalid'],
    size: 60,
    use8BitMime: true,
  };
  t.regex((await client.send(envelope, raw)).response, /^250 2\.0\.0 /);
  const [message] = await mx.received(1);
  t.like(message, { from: 'a@example.invalid', to: ['b@x.invalid', 'c@x.invalid'], tls: true });
  t.deepEqual(message!.params, { SIZE: '60', BODY: '8BITMIME' });
  t.deepEqual(message!.raw, Buffer.from(raw));
  t.is(message!.session.commands[0], 'EHLO client.invalid');
  client.quit();
  await until(() => mx.connections === 0, { what: 'the connection to end' });
  t.is(mx.maxConnections, 1);
});

test('several messages on one connection', async (t) => {
  const mx = await start(t);
  const client = await connect(t, mx);
  for (const n of [1, 2, 3])
    await client.send({ from: '', to: `user${n}@x.invalid` }, `Subject: ${n}\r\n\r\n`);
  const messages = await mx.received(3);
  t.deepEqual(
    messages.map(({ from, to }) => [from, to]),
    [
      ['', ['user1@x.invalid']],
      ['', ['user2@x.invalid']],
      ['', ['user3@x.invalid']],
    ],
  );
  t.is(mx.sessions.length, 1);
});

test('addresses that decide for themselves', async (t) => {
  const mx = await start(t);
  const rejection = async (to: string) =>
    (await t.throwsAsync(deliver(t, mx, to))) as Error & { response?: string };
  t.regex((await rejection('unknown@x.invalid')).response!, /^550 5\.1\.1 /);
  t.regex((await rejection('unknown+2@x.invalid')).response!, /^550 5\.1\.1 /);
  t.regex((await rejection('full@x.invalid')).response!, /^552 5\.2\.2 /);
  t.regex((await rejection('tempfail@x.invalid')).response!, /^451 4\.3\.0 /);
  t.regex((await rejection('greylist@x.invalid')).response!, /^451 4\.7\.1 /);
  t.regex(await deliver(t, mx, 'greylist@x.invalid'), /^250 /);
  t.is((await rejection('drop-in-data@x.invalid')).response, undefined);
  t.is(mx.messages.length, 1);
  t.is((await rejection('drop-after-dot@x.invalid')).response, undefined);
  const [, dropped] = await mx.received(2);
  t.like(dropped, { to: ['drop-after-dot@x.invalid'], reply: null });
});

test('one bad recipient among good ones', async (t) => {
  const mx = await start(t);
  const client = await connect(t, mx);
  const to = ['unknown@x.invalid', 'good@x.invalid'];
  const { rejected } = await client.send({ from: 'a@example.invalid', to }, 'Subject: x\r\n\r\n');
  t.deepEqual(rejected, ['unknown@x.invalid']);
  t.deepEqual(mx.messages[0]!.to, ['good@x.invalid']);
});

test('TLS: not offered, refused, broken', async (t) => {
  const mxs = await startMxs(
    ['127.0.0.2', { host: '127.0.0.3', tls: 'refused' }, { host: '127.0.0.4', tls: 'broken' }],
    { tls: false },
  );
  t.teardown(() => Promise.all(mxs.map((mx) => mx.close())));
  const [plain, refused, broken] = mxs as [Mx, Mx, Mx];
  await deliver(t, plain, 'b@x.invalid');
  t.false(plain.messages[0]!.tls);
  t.notRegex(plain.sessions[0]!.transcript.join(), /STARTTLS/);

  await t.throwsAsync(deliver(t, refused, 'b@x.invalid'), { message: /STARTTLS/ });
  await deliver(t, refused, 'b@x.invalid', { opportunisticTLS: true });
  t.false(refused.messages[0]!.tls);

  await t.throwsAsync(deliver(t, broken, 'b@x.invalid'), { message: /wrong version number/ });
  t.deepEqual(broken.sessions[0]!.commands, ['EHLO client.invalid', 'STARTTLS']);
});

test('hosts at one port', async (t) => {
  const mxs = await startMxs(['127.0.0.2', '127.0.0.3', '127.0.0.4']);
  t.teardown(() => Promise.all(mxs.map((mx) => mx.close())));
  t.is(new Set(mxs.map((mx) => mx.port)).size, 1);
  for (const mx of mxs) await deliver(t, mx, 'b@x.invalid');
  t.deepEqual(
    mxs.map((mx) => mx.messages.length),
    [1, 1, 1],
  );
  await mxs[0]!.close();
  await t.throwsAsync(deliver(t, mxs[0]!, 'b@x.invalid'), { message: /ECONNREFUSED/ });
});

test('a script speaks first: replies, attempts, several lines', async (t) => {
  const mx = await start(t, {
    script: {
      ehlo: () => ['250 other.invalid', '250 SIZE 100'],
      rcpt: ({ address, attempt }) => (attempt < 3 ? `451 4.2.1 ${address} ${attempt}` : undefined),
      dot: async ({ message }) => `250 2.0.0 ${message!.raw.length} bytes`,
    },
  });
  const refusal = { message: /451 4\.2\.1 b@x\.invalid 1/ };
  await t.throwsAsync(deliver(t, mx, 'b@x.invalid'), refusal);
  await t.throwsAsync(deliver(t, mx, 'b@x.invalid'), { message: /451 4\.2\.1 b@x\.invalid 2/ });
  t.is(await deliver(t, mx, 'b@x.invalid'), '250 2.0.0 25 bytes');
  t.true(mx.sessions[0]!.transcript.includes('S: 250-other.invalid'));
  mx.script = { dot: () => '554 5.7.1 spam' };
  await t.throwsAsync(deliver(t, mx, 'b@x.invalid'), { message: /554 5\.7\.1 spam/ });
  t.is(mx.messages.length, 1, 'a refused message is not kept');
});

test('a script misbehaves: close, hang, raw, 421', async (t) => {
  const mx = await start(t);
  mx.script = { connect: () => 'close' };
  await t.throwsAsync(connect(t, mx), { message: /ECONNRESET/ });
  mx.script = { greeting: () => 'close' };
  await t.throwsAsync(connect(t, mx), { message: /closed/ });
  mx.script = { greeting: () => 'hang' };
  await t.throwsAsync(connect(t, mx, { greetingTimeout: 50 }), { message: /Greeting never received/ });
  mx.script = { greeting: () => '554 5.3.2 no service' };
  await t.throwsAsync(connect(t, mx), { message: /554 5\.3\.2 no service/ });
  mx.script = { greeting: () => ({ raw: 'SSH-2.0-OpenSSH\r\n' }) };
  await t.throwsAsync(connect(t, mx), { message: /SSH-2\.0/ });
  mx.script = { mail: () => '421 4.3.2 going down' };
  await t.throwsAsync(deliver(t, mx, 'b@x.invalid'), { message: /421 4\.3\.2/ });
  mx.script = { dot: () => 'hang' };
  await t.throwsAsync(deliver(t, mx, 'b@x.invalid'), { code: 'ETIMEDOUT' });
  t.like(mx.messages, [{ reply: null }]);
});

test('commands in one packet are answered in order (RFC 2920)', async (t) => {
  const mx = await start(t);
  const sent = [
    'EHLO c.invalid',
    'MAIL FROM:<> SIZE=9',
    'RCPT TO:<unknown@x.invalid>',
    'RCPT TO:<b@x.invalid>',
  ];
  const said = await dialogue(mx, [...sent, 'DATA', 'body', '.', 'NOOP', 'FOO', 'QUIT', ''].join('\r\n'));
  t.deepEqual(
    said.filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)),
    ['220', '250', '250', '550', '250', '354', '250', '250', '502', '221'],
  );
  t.is(mx.messages[0]!.raw.toString(), 'body\r\n');
});

test('what the protocol refuses', async (t) => {
  const mx = await start(t, { extensions: ['SIZE 100'] });
  const refusals: [string, RegExp][] = [
    ['MAIL FROM:<>', /^503 .*EHLO/],
    ['EHLO c.invalid', /^250 STARTTLS/],
    ['RCPT TO:<b@x.invalid>', /^503 /],
    ['MAIL FROM:a@x.invalid', /^501 /],
    ['MAIL FROM:<> SMTPUTF8', /^555 5\.5\.4 SMTPUTF8/],
    ['MAIL FROM:<> SIZE=101', /^552 5\.3\.4/],
    ['MAIL FROM:<å@x.invalid>', /^553 5\.6\.7/],
    ['MAIL FROM:<>', /^250 /],
    ['DATA', /^554 /],
    ['RSET', /^250 /],
    ['DATA', /^503 /],
    ['QUIT', /^221 /],
  ];
  const said = await dialogue(mx, refusals.map(([command]) => `${command}\r\n`).join(''));
  const replies = said.filter((line) => line[3] === ' ').slice(1);
  for (const [n, [command, expected]] of refusals.entries()) t.regex(replies[n]!, expected, command);
});

test('only CRLF ends a line or a message', async (t) => {
  const mx = await start(t);
  const said = await dialogue(
    mx,
    'NOOP\nEHLO c.invalid\r\nMAIL FROM:<>\r\nRCPT TO:<b@x.invalid>\r\nDATA\r\na\n.\nb\r\n.\nc\r\n.\r\nQUIT\r\n',
  );
  t.regex(said[1]!, /^500 5\.5\.2/);
  t.is(mx.messages[0]!.raw.toString(), 'a\n.\nb\r\n\nc\r\n');
});

test('an empty message, and one that comes a byte at a time', async (t) => {
  const mx = await start(t);
  const envelope = 'MAIL FROM:<>\r\nRCPT TO:<b@x.invalid>\r\nDATA\r\n';
  await dialogue(mx, `EHLO c.invalid\r\n${envelope}.\r\nQUIT\r\n`);
  const socket = net.connect({ port: mx.port, host: mx.host, noDelay: true });
  t.teardown(() => socket.destroy());
  socket.resume();
  for (const byte of `EHLO c.invalid\r\n${envelope}a.\r\nb\r\n..\r\n.\r\n`) {
    socket.write(byte);
    await new Promise(setImmediate);
  }
  const messages = await mx.received(2);
  t.deepEqual(
    messages.map(({ raw }) => raw.toString()),
    ['', 'a.\r\nb\r\n.\r\n'],
  );
});

test('commands sent ahead of the handshake are forgotten (RFC 3207)', async (t) => {
  const mx = await start(t);
  const socket = net.connect(mx.port, mx.host);
  t.teardown(() => socket.destroy());
  socket.write('EHLO c.invalid\r\nSTARTTLS\r\nRSET\r\n');
  await until(() => mx.sessions[0]?.transcript.at(-1)?.startsWith('S: 220 2.0.0'), {
    what: 'STARTTLS to be answered',
  });
  t.deepEqual(mx.sessions[0]!.commands, ['EHLO c.invalid', 'STARTTLS']);
});

test('received tells what came instead', async (t) => {
  const mx = await start(t);
  await t.throwsAsync(deliver(t, mx, 'full@x.invalid'));
  await t.throwsAsync(mx.received(1, 30), {
    message: /1 messages at .*there are 0.*C: RCPT TO:<full@x.invalid>\n {2}S: 552/s,
  });
});

test('verifyDkim judges a message by the keys in the DNS', async (t) => {
  const { privateKey, publicKey } = keys();
  const dns = await startDns({
    's1._domainkey.example.invalid': { TXT: [`v=DKIM1; k=rsa; p=${publicKey}`] },
  });
  t.teardown(dns.close);
  const raw = 'From: a@example.invalid\r\nSubject: hello\r\n\r\nhello\r\n';
  // dkimSign reads the list; that its types want the same again beside it is their mistake.
  const signature = { signingDomain: 'example.invalid', selector: 's1', privateKey };
  const { signatures } = await dkimSign(raw, { ...signature, signatureData: [{ ...signature }] });
  const mine = { domain: 'example.invalid', selector: 's1' };
  t.like(await verifyDkim(signatures + raw, dns), [{ ...mine, result: 'pass' }]);
  t.like(await verifyDkim(signatures + raw.replace('Subject: hello', 'Subject: hullo'), dns), [
    { ...mine, result: 'fail' },
  ]);
  t.like(await verifyDkim(raw, dns), [{ domain: undefined, result: 'none' }]);
  dns.set({ 's1._domainkey.example.invalid': 'SERVFAIL' });
  t.like(await verifyDkim(signatures + raw, dns), [{ ...mine, result: 'temperror' }]);
});

function keys() {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
}
