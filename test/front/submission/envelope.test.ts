/**
 * Applications without a queue of their own name many recipients at once, keep connections open, and write addresses as they
 * like (django/django#19155, nodemailer/nodemailer#1186, PHPMailer/PHPMailer#2012, golang/go#57646, TryGhost/Ghost#15725). Each
 * recipient is served, or nobody is and the program notices.
 */
import test from 'ava';
import { setLimits } from '#accounts/rows/organizations.ts';
import { oneKind } from '#lab/database/databases.ts';
import type { SmtpClient } from '#lab/mx/smtp-client.ts';
import {
  delivered,
  emailIdOf,
  loggedIn,
  messageTo,
  startSubmission,
  submissionWorlds,
  submit,
  tenantOf,
  transportOf,
} from '#lab/scenes/submission.ts';
import { column, table } from '#lab/table.ts';

const worlds = submissionWorlds([oneKind]);

const from = 'From: App <app@sender.invalid>';
const good = [from, 'Subject: Hi', '', 'Hi'];

const people = (count: number, name = 'p') =>
  Array.from({ length: count }, (_, n) => `${name}${n}@there.invalid`);

/** All commands of the envelope in one piece (RFC 2920). */
async function pipelined(talk: SmtpClient, to: string[], reply: string): Promise<void> {
  const rcpts = to.map((address) => `RCPT TO:<${address}>\r\n`).join('');
  talk.write(`MAIL FROM:<a@b.invalid>\r\n${rcpts}DATA\r\n`);
  await talk.reply('250 2.1.0');
  for (let n = 0; n < to.length; n++) await talk.reply(n < 1000 ? '250 2.1.5' : '452 4.5.3');
  await talk.reply(reply);
}

test('a thousand recipients in one transaction are one email', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world, { quota: 1000 });
  const talk = await loggedIn(tenant);
  await pipelined(talk, people(1000), '354');
  const reply = await talk.says(`${good.join('\r\n')}\r\n.\r\n`, '250 2.6.0');
  t.is((await world.db('deliveries').where({ email_id: emailIdOf(reply) })).length, 1000);
  await messageTo(world, 'p999@there.invalid');
});

test('with more than a thousand nobody gets the mail, DATA says what to do, and the next mail goes', async (t) => {
  const world = worlds[oneKind];
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  await pipelined(talk, people(1010), '552 5.5.3 Nothing was sent: a message may have 1000 recipients');
  t.is((await world.db('emails').where({ org_id: tenant.orgId })).length, 0);
  await submit(talk, ['after@there.invalid'], good);
});

test('the setting lowers the limit; an address that occurs twice counts once', async (t) => {
  const world = await startSubmission(t, { settings: { POSTERN_SUBMISSION_RECIPIENTS: '3' } });
  const tenant = await tenantOf(world);
  const talk = await loggedIn(tenant);
  const reply = await submit(talk, [...people(3), ...people(2), 'P1@THERE.invalid'], good);
  t.is((await delivered(tenant, emailIdOf(reply))).recipients.length, 3);
  await talk.says('MAIL FROM:<>\r\n', '250');
  for (const one of people(3)) await talk.says(`RCPT TO:<${one}>\r\n`, '250');
  await talk.says('RCPT TO:<fourth@there.invalid>\r\n', '452');
  await talk.says('RSET\r\n', '250');
  await submit(talk, people(3), good);
});

test('nodemailer with more recipients than the limit fails as a whole', async (t) => {
  const world = await startSubmission(t, { settings: { POSTERN_SUBMISSION_RECIPIENTS: '10' } });
  const tenant = await tenantOf(world);
  const mail = { from: 'app@sender.invalid', to: people(15), subject: 'Hi', text: 'Hi' };
  const error = await t.throwsAsync(transportOf(tenant).sendMail(mail));
  t.regex(error!.message, /552 5\.5\.3 Nothing was sent/);
  t.is((await world.db('emails')).length, 0);
});

test('where the day or the credits do not last for all recipients, nobody gets the mail', async (t) => {
  const world = worlds[oneKind];
  const poor = await tenantOf(world, { quota: 14 });
  t.regex(
    await submit(await loggedIn(poor), people(15), good, '550'),
    /INSUFFICIENT_CREDITS: .* 15 credits, and the balance is 14\. Nothing was sent/,
  );
  const limited = await tenantOf(world, { quota: 1000 });
  await setLimits(world.db, limited.orgId, {
    requestsPerSecond: null,
    requestsPerDay: null,
    emailsPerDay: 14,
  });
  t.regex(await submit(await loggedIn(limited), people(15), good, '451'), /14 recipients a day/);
  const ids = [poor.orgId, limited.orgId];
  t.is((await world.db('emails').whereIn('org_id', ids)).length, 0);
});

test('a session that lasts: many mails, resets, checks of a pool, refused mails and wrong recipients', async (t) => {
  const tenant = await tenantOf(worlds[oneKind]);
  const talk = await loggedIn(tenant);
  const stranger = ['From: a@stranger.invalid', 'Subject: Hi', '', 'Hi'];
  for (let n = 0; n < 60; n++) {
    await submit(talk, ['many@there.invalid'], [from, `Subject: ${n}`, '', 'Hi']);
    await talk.says('RSET\r\n', '250');
    await talk.says('NOOP\r\n', '250');
  }
  for (let n = 0; n < 25; n++) await submit(talk, ['many@there.invalid'], stranger, '550');
  await talk.says('MAIL FROM:<a@b.invalid>\r\n', '250');
  for (let n = 0; n < 50; n++) await talk.says(`RCPT TO:<wrong${n}@localhost>\r\n`, '553');
  for (const one of people(300)) await talk.says(`RCPT TO:<${one}>\r\n`, '250');
  await talk.says('DATA\r\n', '354');
  t.regex(await talk.says(`${good.join('\r\n')}\r\n.\r\n`, '250'), /Accepted as/);
});

test('commands that are none still end the session', async (t) => {
  const talk = await loggedIn(await tenantOf(worlds[oneKind]));
  for (let n = 0; n < 9; n++) await talk.says('NONSENSE\r\n', '500');
  talk.write('NONSENSE\r\n');
  t.regex(await talk.over(), /^421 /);
});

const senders = column('submission/senders');

for (const [index, sender] of senders.entries()) {
  test(`MAIL FROM:${sender} is taken`, async (t) => {
    const world = worlds[oneKind];
    const talk = await loggedIn(await tenantOf(world));
    const to = `sender${index}@there.invalid`;
    await talk.begins(sender, `<${to}>`);
    await talk.says(`${good.join('\r\n')}\r\n.\r\n`, '250');
    t.regex((await messageTo(world, to)).from, /@postern\.invalid$/, 'bounces come to us');
  });
}

const refusedParameters = Object.fromEntries(table<[string, string]>('submission/refused-parameters'));

test('parameters of MAIL are judged as before', async (t) => {
  const talk = await loggedIn(await tenantOf(worlds[oneKind]));
  for (const [text, reply] of Object.entries(refusedParameters)) {
    await t.notThrowsAsync(talk.says(`MAIL FROM:${text}\r\n`, reply), text);
  }
});

const recipients: Record<string, string> = Object.fromEntries(table('submission/recipients'));

for (const [path, address] of Object.entries(recipients)) {
  test(`RCPT TO:${path} names ${address}`, async (t) => {
    const world = worlds[oneKind];
    const tenant = await tenantOf(world);
    const talk = await loggedIn(tenant);
    await talk.begins('<>', path);
    const to = `To: <${address}>`;
    const reply = await talk.says(
      `${[...good.slice(0, 1), to, ...good.slice(1)].join('\r\n')}\r\n.\r\n`,
      '250',
    );
    await messageTo(world, address);
    const email = await delivered(tenant, emailIdOf(reply));
    t.deepEqual(email.to, [address], 'To names it, too');
  });
}

const wrong: Record<string, string> = Object.fromEntries(table('submission/wrong-recipients'));

test('a recipient that is none, or that could be two, is refused', async (t) => {
  const talk = await loggedIn(await tenantOf(worlds[oneKind]));
  await talk.says('MAIL FROM:<>\r\n', '250');
  for (const [path, reply] of Object.entries(wrong)) {
    await t.notThrowsAsync(talk.says(`RCPT TO:${path}\r\n`, reply), path);
  }
});
