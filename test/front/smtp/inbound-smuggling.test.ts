/**
 * What one server takes for the end of a message and another for its middle: the published sequences of SMTP smuggling
 * (CVE-2023-51764, -51765, -51766, and the earlier ones with a bare CR). None may end a message here. None may be in a message
 * of an application, for it is sent on; in returned mail they are line ends. And whoever does not wait for a reply that has to
 * be waited for is refused before what he sent ahead means anything.
 */
import test from 'ava';
import { startListener } from '#lab/mx/listener.ts';
import { connectSmtp, plain, type SmtpClient } from '#lab/mx/smtp-client.ts';
import { table } from '#lab/table.ts';

const header = 'From: a@there.invalid\r\nSubject: one\r\n\r\nfirst';
const smuggled =
  'MAIL FROM:<evil@there.invalid>\r\nRCPT TO:<joe@ours.invalid>\r\nDATA\r\nSubject: two\r\n\r\nsecond';

/** What stands between the first message and the one behind it. */
const ends: Record<string, string> = Object.fromEntries(table('smtp-in/false-ends'));

async function sendInPieces(talk: SmtpClient, all: string, size: number): Promise<void> {
  await talk.begins('<a@there.invalid>', '<ann@ours.invalid>');
  for (let at = 0; at < all.length; at += size) talk.write(all.slice(at, at + size));
}

const sizes = [Number.POSITIVE_INFINITY, 1];
const ofApplications = { handler: { authenticate: async () => 'somebody' }, allowClearLogin: true };

for (const [name, end] of Object.entries(ends)) {
  const all = `${header}${end}${smuggled}\r\n.\r\nQUIT\r\n`;
  test(`smuggling by ${name} is refused on submission, in one piece and byte by byte`, async (t) => {
    for (const size of sizes) {
      const listener = await startListener(t, ofApplications);
      const talk = await connectSmtp(listener.port);
      await talk.says('EHLO x\r\n', '250');
      await talk.says(`AUTH PLAIN ${plain('x')}\r\n`, '235');
      await sendInPieces(talk, all, size);
      t.is(await talk.over(), '521 5.5.2 Bare CR or LF; a line must end with CRLF');
      t.deepEqual(listener.taken, []);
      await listener.close();
    }
  });
}

/** These have the bytes CR LF . CR LF in them, which end a message on every server. */
const isEnd = (end: string) => end.includes('\r\n.\r\n');

for (const [name, end] of Object.entries(ends).filter(([, end]) => !isEnd(end))) {
  const all = `${header}${end}${smuggled}\r\n.\r\nQUIT\r\n`;
  test(`${name} in returned mail ends no message: it is all one`, async (t) => {
    for (const size of sizes) {
      const listener = await startListener(t);
      const talk = await connectSmtp(listener.port);
      await talk.says('EHLO x\r\n', '250');
      await sendInPieces(talk, all, size);
      await talk.reply('250 2.6.0 Taken');
      await talk.reply('221');
      t.is(listener.taken.length, 1);
      const text = listener.taken[0]!.raw.toString();
      t.notRegex(text, /\r(?!\n)|(?<!\r)\n/, 'line ends are CRLF');
      t.is(text, `${header}${asLines(end)}${smuggled}\r\n`);
      await listener.close();
    }
  });
}

/** Each bare CR or LF is a line end, CRs before another are nothing, and a dot is text. */
function asLines(text: string): string {
  return text.replace(/\r*\n|\r+(?!\n)/g, '\r\n');
}

test('an LF ends a line of returned mail: commands, fields, the body and its dots', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port);
  await talk.says('EHLO x\n', '250');
  await talk.says('MAIL FROM:<>\n', '250');
  await talk.says('RCPT TO:<ann@ours.invalid>\n', '250');
  await talk.says('DATA\n', '354');
  talk.write('Subject: x\n\n..one\n.two\n.\n..\n.\r\nlast\n\r\n.\r\n');
  await talk.reply('250 2.6.0');
  t.is(listener.taken[0]!.raw.toString(), 'Subject: x\r\n\r\n.one\r\n.two\r\n.\r\n.\r\n.\r\nlast\r\n\r\n');
  await talk.says('NOOP\n', '250');
});

test('behind a message that ends as it should, commands with a bare CR are refused', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port);
  await talk.says('EHLO x\r\n', '250');
  await talk.begins('<a@there.invalid>', '<ann@ours.invalid>');
  talk.write(`${header}\r\n.\r\nNOOP\rNOOP\r\n`);
  await talk.reply('250 2.6.0 Taken');
  t.regex(await talk.over(), /^521 5\.5\.2 /);
  t.deepEqual(
    listener.taken.map(({ raw }) => raw.toString()),
    [`${header}\r\n`],
  );
});

test('dots, empty lines and a message in pieces of any size come through as they were', async (t) => {
  const listener = await startListener(t);
  const body = ['.', '..', '', '.x', '', '', 'x.', ' .', '.'].join('\r\n');
  const message = `Subject: x\r\n\r\n${body}\r\n`;
  const wire = `${message.replace(/^\./gm, '..')}.\r\n`;
  for (const size of [1, 2, 3, 4, 5, 7, 1000]) {
    const talk = await connectSmtp(listener.port);
    await talk.says('EHLO x\r\n', '250');
    await talk.begins('<>', '<ann@ours.invalid>');
    for (let at = 0; at < wire.length; at += size) talk.write(wire.slice(at, at + size));
    await talk.reply('250 2.6.0');
    talk.close();
    t.is(listener.taken.at(-1)!.raw.toString(), message, `pieces of ${size}`);
  }
});

/** Said in one piece after the greeting; the last reply. */
const ahead: Record<string, [text: string, last: RegExp]> = {
  'a command behind EHLO': ['EHLO x\r\nMAIL FROM:<a@b.invalid>\r\n', /^554 5\.5\.0 /],
  'a command behind HELO': ['HELO x\r\nNOOP\r\n', /^554 5\.5\.0 /],
  'half a command behind EHLO': ['EHLO x\r\nMA', /^554 5\.5\.0 /],
  'commands behind STARTTLS': [
    'HELP\r\nSTARTTLS\r\nEHLO evil\r\nMAIL FROM:<a@b.invalid>\r\n',
    /^554 5\.5\.0 /,
  ],
  'a password behind AUTH': ['AUTH LOGIN\r\ndGVzdA==\r\n', /^554 5\.5\.0 /],
  'a bare LF after a command': ['NOOP\n', /^521 5\.5\.2 /],
  'a bare CR within a command': ['NO\rOP\r\n', /^521 5\.5\.2 /],
  'a line without end': ['x'.repeat(5000), /^500 5\.5\.2 /],
  'a request of HTTP': ['GET / HTTP/1.1\r\nHost: x\r\n\r\n', /^421 /],
};

for (const [name, [text, last]] of Object.entries(ahead)) {
  test(`${name} is refused and the connection ends`, async (t) => {
    const listener = await startListener(t, { handler: { authenticate: async () => 'somebody' } });
    const talk = await connectSmtp(listener.port);
    talk.write(text);
    t.regex(await talk.over(), last);
  });
}

test('a message ahead of the reply to DATA is refused', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port);
  await talk.says('EHLO x\r\n', '250');
  talk.write('MAIL FROM:<>\r\nRCPT TO:<ann@ours.invalid>\r\nDATA\r\nSubject: x\r\n\r\nx\r\n.\r\n');
  t.regex(await talk.over(), /^554 5\.5\.0 /);
  t.deepEqual(listener.taken, []);
});

test('a client that talks before the greeting is refused', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port, { greeted: false });
  talk.write('EHLO x\r\n');
  t.regex(await talk.over(), /^421 /);
});

test('what came before STARTTLS is forgotten, and what is sent in clear behind it is never obeyed', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port);
  await talk.says('EHLO x\r\n', '250');
  await talk.says('MAIL FROM:<before@there.invalid>\r\n', '250');
  await talk.says('STARTTLS\r\n', '220');
  await talk.secure();
  await talk.says('RCPT TO:<ann@ours.invalid>\r\n', '503');
  await talk.says('EHLO x\r\n', '250');
  await talk.says('RCPT TO:<ann@ours.invalid>\r\n', '503');

  const injecting = await connectSmtp(listener.port);
  await injecting.says('EHLO x\r\n', '250');
  await injecting.says('STARTTLS\r\n', '220');
  injecting.write('EHLO evil\r\nMAIL FROM:<evil@there.invalid>\r\nRCPT TO:<ann@ours.invalid>\r\n');
  await injecting.over();
  t.regex(injecting.received, /220 2\.0\.0 Ready to start TLS\r\n[^2]*$/, 'no reply to what was injected');
});

test('what RFC 2920 allows to be sent together is answered in order', async (t) => {
  const listener = await startListener(t);
  const talk = await connectSmtp(listener.port);
  await talk.says('EHLO x\r\n', '250');
  talk.write('MAIL FROM:<>\r\nRCPT TO:<ann@ours.invalid>\r\nRCPT TO:<ann@there.invalid>\r\nDATA\r\n');
  for (const reply of ['250 2.1.0', '250 2.1.5', '550 5.7.1', '354']) await talk.reply(reply);
  talk.write('Subject: x\r\n\r\nx\r\n.\r\nMAIL FROM:<>\r\nRSET\r\nQUIT\r\n');
  for (const reply of ['250 2.6.0', '250 2.1.0', '250 2.0.0', '221']) await talk.reply(reply);
  await talk.over();
  t.is(listener.taken.length, 1);
});
