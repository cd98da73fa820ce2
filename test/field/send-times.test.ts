/**
 * Times of sending as languages print them (Ruby's Time#to_s, Python's str(datetime), PHP's DATE_ISO8601, PostgreSQL): by our
 * API, Resend's, Mailgun's and the header of a submitted mail. Anything else is told the form, with an example.
 */
import test from 'ava';
import { readTime } from '../../src/mail/read-time.ts';
import { connectSmtp, plain } from '../lab/mx/smtp-client.ts';
import { startSubmission } from '../lab/scenes/submission.ts';

const at = Date.UTC(2026, 11, 24, 17, 0, 30);

const forms: [string, number][] = [
  ['2026-12-24T17:00:30Z', at],
  ['2026-12-24t17:00:30z', at],
  ['2026-12-24 17:00:30Z', at],
  ['2026-12-24 17:00:30+00', at],
  ['2026-12-24 17:00:30 +0000', at],
  ['2026-12-24T17:00:30+0000', at],
  ['2026-12-24T18:00:30+0100', at],
  ['2026-12-24T18:00:30+01', at],
  ['2026-12-24T18:00:30+01:00', at],
  ['2026-12-24 11:30:30-0530', at],
  ['2026-12-24T17:00:30-00:00', at],
  ['2026-12-24T17:00Z', at - 30_000],
  ['2026-12-24 18:00+01', at - 30_000],
  ['2026-12-24T17:00:30.5Z', at + 500],
  ['2026-12-24T17:00:30,123Z', at + 123],
  ['2026-12-24 17:00:30.123456+00:00', at + 123],
  ['2026-12-24T17:00:30.123456789Z', at + 123],
  [' 2026-12-24T17:00:30Z\n', at],
  ['2027-01-01T00:30:00+02:00', Date.UTC(2026, 11, 31, 22, 30)],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
];

const none = [
  ...[
    '',
    'tomorrow',
    'now',
    'in 5 parsecs',
    '1798131630',
    '2026-12-24',
    '17:00',
    '2026-12-24T17:00:30',
    '2026-12-24 17:00:30',
  ],
  ...[
    '2026-02-30T00:00:00Z',
    '2027-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-12-00T00:00:00Z',
  ],
  ...[
    '2026-12-24T24:00:00Z',
    '2026-12-24T17:60:00Z',
    '2026-12-24T17:00:60Z',
    '2026-12-24T17:00:30+24:00',
    '2026-12-24T17:00:30+01:60',
  ],
  ...[
    '2026-12-24T17:00:30+1',
    '2026-12-24T17:00:30+010',
    '2026-12-24T17:00:30+01:',
    '2026-12-24T17:00:30 01:00',
    '2026-12-24T17:00:30ZZ',
  ],
  ...[
    '2026-12-24  17:00:30Z',
    '20261224T170030Z',
    '26-12-24T17:00:30Z',
    '+002026-12-24T17:00:30Z',
    '24.12.2026 17:00',
    '12/24/2026 5:00 PM',
  ],
  ...[
    '2026-12-24T17:00:30.Z',
    '2026-12-24T17:00:30Europe/Berlin',
    'Thu, 24 Dec 2026 17:00:30 +0000',
    '٢٠٢٦-12-24T17:00:30Z',
  ],
];

test('a time is read as programs write it', (t) => {
  for (const [text, expected] of forms) t.is(readTime(text), expected, text);
  for (const text of none) t.is(readTime(text), null, text);
});

test('by every way in, and with the form in the refusal', async (t) => {
  const world = await startSubmission(t);
  const later = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 3_600_000);
  const iso = later.toISOString();
  const written = [`${iso.slice(0, 16).replace('T', ' ')}+00`, `${iso.slice(0, 19)}+0000`, iso.toLowerCase()];
  const sent = async (response: Response) => ({ status: response.status, text: await response.text() });
  const bearer = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
  const basic = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
  const mail = { from: 'app@sender.invalid', subject: 'Hello', text: 'Hi' };
  const to = 'ann@there.invalid';
  const submitted = async (time: string) => {
    const talk = await connectSmtp(world.ports.implicit, { tls: true });
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(world.key)}\r\n`, '235');
    await talk.says('MAIL FROM:<a@sender.invalid>\r\n', '250');
    await talk.says(`RCPT TO:<${to}>\r\n`, '250');
    await talk.says('DATA\r\n', '354');
    const head = `From: app@sender.invalid\r\nTo: ${to}\r\nSubject: ${time} by SMTP\r\nX-Postern-Scheduled-At: ${time}\r\n\r\n`;
    const text = await talk.says(`${head}Hi ${Math.random()}\r\n.\r\n`, '');
    return { status: Number(text.slice(0, 3)), text };
  };
  const ways: Record<string, (time: string) => Promise<{ status: number; text: string }>> = {
    api: async (scheduledAt) => {
      const { status, body } = await world.send({ to, scheduledAt, subject: `${scheduledAt} api` });
      return { status, text: JSON.stringify(body) };
    },
    resend: async (scheduled_at) =>
      sent(
        await fetch(`${world.url()}/emails`, {
          method: 'POST',
          headers: bearer,
          body: JSON.stringify({ ...mail, to, scheduled_at, subject: `${scheduled_at} resend` }),
        }),
      ),
    mailgun: async (time) =>
      sent(
        await fetch(`${world.url()}/v3/sender.invalid/messages`, {
          method: 'POST',
          headers: { authorization: basic },
          body: new URLSearchParams({ ...mail, to, 'o:deliverytime': time, subject: `${time} mailgun` }),
        }),
      ),
    submission: submitted,
  };
  for (const [way, send] of Object.entries(ways)) {
    for (const time of written) {
      const before = await world.db('emails').count({ count: '*' }).first();
      const { status, text } = await send(time);
      t.true(status < 300, `${way} ${time}: ${status} ${text}`);
      const row = await world.db('emails').orderBy('id', 'desc').first();
      t.is(Number(row.scheduled_at), later.getTime(), `${way} ${time}`);
      t.is(
        Number((await world.db('emails').count({ count: '*' }).first())!.count),
        Number(before!.count) + 1,
      );
    }
    for (const time of ['tomorrow at noon', iso.slice(0, 19), '2026-02-30T00:00:00Z']) {
      const { status, text } = await send(time);
      t.true(status >= 400, `${way} ${time}: ${status}`);
      t.regex(text, /such as .*2026-12-24T18:00:00\+01:00/, `${way} ${time}`);
    }
  }
  t.regex(
    (await world.send({ to, scheduledAt: 1_798_131_630 })).body.issues[0].message,
    /such as 2026-12-24T18:00:00/,
  );
  const rfc = await ways.mailgun!(later.toUTCString().replace('GMT', '-0000 (UTC)'));
  t.is(rfc.status, 200, rfc.text);
});
