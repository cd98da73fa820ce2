/**
 * A person who forwards, quotes or attaches a bounce in a mail to our return path lives: nothing in it is about our delivery. From
 * bug reports against mailing list managers and help desks that unsubscribed such people.
 */
import test from 'ava';
import { goldenMails } from '#lab/golden.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';

const bounces = goldenMails().filter(
  ({ role, reading }) => role === 'return-path' && (reading.kind === 'failed' || reading.kind === 'delayed'),
);
const person = 'From: Ann Example <ann@example.org>';
const subjects = ['Re: Your order 4711', 'Fwd: Undelivered Mail Returned to Sender', 'failure notice'];

const says = async (text: string) => (await readMail(Buffer.from(text, 'latin1'), 'return-path', false)).kind;

function partsOf(raw: Buffer): [header: string, body: string] {
  const text = raw.toString('latin1');
  const at = text.indexOf('\r\n\r\n');
  return [text.slice(0, at), text.slice(at + 4)];
}

const withoutFrom = (header: string) => header.replace(/^(?:From|X-Failed-Recipients):.*\r\n/gim, '');

for (const { name, raw } of bounces) {
  const [header, body] = partsOf(raw);
  if (!/^Content-Type:\s*multipart\/report/im.test(header)) {
    test(`the words of ${name}, from a person`, async (t) => {
      for (const subject of subjects) {
        const own = withoutFrom(header).replace(/^Subject:.*$/im, `Subject: ${subject}`);
        t.regex(await says(`${person}\r\n${own}\r\n\r\n${body}`), /^(?:letter|automatic)$/, subject);
      }
    });
  }
  test(`${name}, quoted or attached by a person`, async (t) => {
    for (const subject of subjects) {
      const top = `${person}\r\nSubject: ${subject}\r\nMIME-Version: 1.0\r\n`;
      const quoted = body.replace(/^/gm, '> ');
      t.is(await says(`${top}\r\nWhat is this?\r\n\r\n${quoted}`), 'letter', `${subject}, quoted`);
      const attached = `--w\r\nContent-Type: text/plain\r\n\r\nWhat is this?\r\n--w\r\nContent-Type: message/rfc822\r\n\r\n`;
      const mixed = `${top}Content-Type: multipart/mixed; boundary=w\r\n\r\n${attached}${raw.toString('latin1')}\r\n--w--\r\n`;
      t.is(await says(mixed), 'letter', `${subject}, attached`);
    }
  });
}

test('the same words count if a daemon says them, from any envelope', async (t) => {
  const words =
    'Your message could not be delivered to the following recipient:\r\n\r\nann@example.org: no such user';
  const from = (value: string) => says(`From: ${value}\r\nSubject: Delivery failure\r\n\r\n${words}`);
  const daemons = [
    'MAILER-DAEMON@mx.example.org',
    'Mail Delivery System <mailer@mx.example.org>',
    'postmaster@example.org',
    '"System Administrator" <admin@example.org>',
    'Mail_Gateway@example.org',
    '<>',
  ];
  for (const daemon of daemons) t.is(await from(daemon), 'failed', daemon);
  const people = ['Ann <ann@example.org>', 'ann@postmaster.example', 'Ann Master <post@example.org>'];
  for (const one of people) t.is(await from(one), 'letter', one);
});
