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
import { type Mx, type MxOptions, mxPem, startMx } from './mx.ts';

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
    socketTimeout: 30_000,
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
