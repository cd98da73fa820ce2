/**
 * Times of sending as languages print them (Ruby's Time#to_s, Python's str(datetime), PHP's DATE_ISO8601, PostgreSQL): by our
 * API, Resend's, Mailgun's and the header of a submitted mail. Anything else is told the form, with an example.
 */
import test from 'ava';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { startSubmission } from '#lab/scenes/submission.ts';
import { sendBy } from '#lab/scenes/ways-in.ts';
import { column, table } from '#lab/table.ts';
import { readTime } from '#platform/values/read-time.ts';

const forms = table<[text: string, iso: string]>('mail/times');

const none = column('mail/no-times');

test('a time is read as programs write it', (t) => {
  for (const [text, iso] of forms) t.is(readTime(text), Date.parse(iso), text);
  for (const text of none) t.is(readTime(text), null, text);
});

test('by every way in, and with the form in the refusal', async (t) => {
  const world = await startSubmission(t);
  const later = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 3_600_000);
  const iso = later.toISOString();
  const written = [`${iso.slice(0, 16).replace('T', ' ')}+00`, `${iso.slice(0, 19)}+0000`, iso.toLowerCase()];
  const mail = { from: 'app@sender.invalid', subject: 'Hello', text: 'Hi' };
  const to = 'ann@there.invalid';
  const submitted = async (time: string) => {
    const talk = await connectSmtp(world.ports.implicit, { tls: true });
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(world.key)}\r\n`, '235');
    await talk.begins('<a@sender.invalid>', `<${to}>`);
    const head = `From: app@sender.invalid\r\nTo: ${to}\r\nSubject: ${time} by SMTP\r\nX-Postern-Scheduled-At: ${time}\r\n\r\n`;
    const text = await talk.says(`${head}Hi ${Math.random()}\r\n.\r\n`, '');
    return { status: Number(text.slice(0, 3)), text };
  };
  const ways: Record<string, (time: string) => Promise<{ status: number; text: string }>> = {
    api: (scheduledAt) => sendBy.api(world, { ...mail, to, scheduledAt, subject: `${scheduledAt} api` }),
    resend: (time) => sendBy.resend(world, { ...mail, to, scheduled_at: time, subject: `${time} resend` }),
    mailgun: (time) =>
      sendBy.mailgun(world, { ...mail, to, 'o:deliverytime': time, subject: `${time} mailgun` }),
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
