/**
 * Names without the quotes that they need, as programs and forms write them (nodemailer/nodemailer#1124, WordPress #47828,
 * getsentry/sentry#6817, domodwyer/mailyak#78): one mailbox, whichever way they come in, signed and sent in quotes.
 */
import test from 'ava';
import { contextOfFile } from '#lab/context-of-file.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { messageTo, type SubmissionWorld, startSubmission } from '#lab/scenes/submission.ts';
import { sendBy } from '#lab/scenes/ways-in.ts';
import { mailboxCure } from '#platform/values/address.ts';

let world: SubmissionWorld;
const context = contextOfFile();

test.before(async () => {
  world = await startSubmission(context, {
    settings: { POSTERN_DIALECTS: 'resend,postmark,sendgrid,mailgun' },
  });
});

const own = 'app@sender.invalid';
const names: Record<string, string> = {
  'an address as its own name': `${own} <${own}>`,
  'a comma': `Doe, John <${own}>`,
  'a comma and a dot': `Acme, Inc. <${own}>`,
  parentheses: `Acme (Berlin) <${own}>`,
  'a colon': `Re: Acme <${own}>`,
  'an @': `Doe @ Acme <${own}>`,
  'brackets and semicolons': `[Acme]; Berlin <${own}>`,
  quotes: `John "Jack" Doe <${own}>`,
};

const ways: Record<string, (from: string, to: string) => Promise<{ status: number }>> = {
  api: (from, to) => sendBy.api(world, { from, to, subject: to, text: 'Hi' }),
  resend: (from, to) => sendBy.resend(world, { from, to, reply_to: from, subject: to, text: 'Hi' }),
  postmark: (From, To) => sendBy.postmark(world, { From, To, ReplyTo: From, Subject: To, TextBody: 'Hi' }),
  mailgun: (from, to) => sendBy.mailgun(world, { from, to, subject: to, text: 'Hi', 'h:Reply-To': from }),
};

const fieldOf = (raw: Buffer, name: string) =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'mi')
    .exec(raw.toString('latin1'))?.[1]
    ?.replaceAll('\r\n', '');

for (const [way, send] of Object.entries(ways)) {
  test(`${way}: names with ${Object.keys(names).join(', ')}`, async (t) => {
    for (const [index, given] of Object.values(names).entries()) {
      const to = `${way}${index}@there.invalid`;
      t.is((await send(given, to)).status, 200, given);
      const { raw } = await messageTo(world, to);
      const name = given.slice(0, given.lastIndexOf(' ')).replaceAll('"', '\\"');
      t.is(fieldOf(raw, 'from'), `"${name}" <${own}>`);
      t.true(['"', undefined].includes(fieldOf(raw, 'reply-to')?.[0]), given);
      t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass');
    }
  });
}

test('lists: a comma before an address is part of the name, one behind it ends the mailbox', async (t) => {
  for (const way of ['postmark', 'mailgun']) {
    const [a, b, c, d] = [1, 2, 3, 4].map((n) => `${way}-list${n}@there.invalid`);
    const list = `Doe, Ann <${a}>, ${b} <${b}>, ${c}, Acme, Inc. <${d}>`;
    t.is((await ways[way]!(own, list)).status, 200);
    const { raw } = await messageTo(world, d!);
    t.is(fieldOf(raw, 'to'), `"Doe, Ann" <${a}>, "${b}" <${b}>, ${c}, "Acme, Inc." <${d}>`);
  }
});

test('what could be two mailboxes is refused', async (t) => {
  for (const from of [
    `a@b.invalid, Ann <${own}>`,
    `other@b.invalid <${own}>`,
    `Ann <${own}> <a@b.invalid>`,
  ]) {
    t.is((await ways.api!(from, 'no@there.invalid')).status, 400, from);
  }
});

test('what needs quotes is refused with them', async (t) => {
  const from = `ann@b.invalid via Acme <${own}>`;
  const quoted = `, with the name in quotes: "ann@b.invalid via Acme" <${own}>`;
  const api = await sendBy.api(world, { from, to: 'no@there.invalid', subject: 'Hi', text: 'Hi' });
  t.true(JSON.parse(api.text).message.endsWith(`Name <address>${quoted}.`), api.text);
  const resend = await sendBy.resend(world, { from: own, to: from, subject: 'Hi', text: 'Hi' });
  t.true(JSON.parse(resend.text).message.endsWith(quoted), resend.text);
  t.regex(mailboxCure(`Acme <Support> <${own}>`), /"Acme <Support>" </);
  for (const unsure of [
    `Ann <a@b.invalid> <${own}>`,
    `a@b.invalid, Ann <${own}>`,
    'Ann',
    '"App <a@b.invalid>',
  ])
    t.is(mailboxCure(unsure), '', unsure);
});
