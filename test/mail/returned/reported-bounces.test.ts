/**
 * What users of other senders reported about bounces, tried over a real socket: each mail is sent, delivered and comes back.
 * From the trackers of Postal, Mautic, listmonk, dada-mail, hitobito, Sisimai, EmailEngine, PHP-Bounce-Handler and others.
 */
import test from 'ava';
import { type ReturnsWorld, startReturns } from '#lab/scenes/returns.ts';

interface Case {
  what: string;
  from?: string;
  /** The envelope sender; empty if absent. */
  sender?: string;
  headers?: string[];
  text?: string[];
  fields?: string[];
  expected: string;
}

const lines = (...all: string[]) => all.join('\r\n');

function mailOf({ from, headers = [], text = [], fields }: Case): string {
  const head = [`From: ${from ?? 'Mail Delivery System <MAILER-DAEMON@mx.example.org>'}`, ...headers];
  if (!fields) return lines(...head, '', ...text, '');
  const type = 'Content-Type: multipart/report; report-type=delivery-status; boundary=b';
  const status = ['Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; mx.example.org', ''];
  return lines(...head, type, '', '--b', '', ...text, '--b', ...status, ...fields, '--b--', '');
}

const failed = (status: string, code?: string) => [
  'Final-Recipient: rfc822; ann@there.invalid',
  'Action: failed',
  `Status: ${status}`,
  ...(code ? [`Diagnostic-Code: smtp; ${code}`] : []),
];
const person = { from: 'Ann <ann@there.invalid>', sender: 'ann@there.invalid' };
const hi = [
  'Hi. This is the qmail-send program at mx.example.org.',
  "I'm afraid I wasn't able to deliver your message.",
];

const cases: Case[] = [
  {
    what: 'Gmail, a reply of several lines (postal#786)',
    fields: failed(
      '5.1.1',
      '550-5.1.1 The email account that you tried to reach does\r\n 550 5.1.1 not exist.',
    ),
    expected: 'hard unknown_user',
  },
  {
    what: '550 No user found (zone-mta#324)',
    fields: failed('5.0.0', '550 No user found'),
    expected: 'hard unknown_user',
  },
  {
    what: 'SPF, which is not the fault of the recipient (relay#258)',
    fields: failed('5.7.23', '550 5.7.23 SPF authentication failed'),
    expected: 'soft auth',
  },
  {
    what: 'SmarterMail (MailBounceDetector#10)',
    text: [
      'Could not deliver message to the following recipient(s):',
      '',
      'Failed Recipient: ann@there.invalid',
      'Reason: Remote host said: 550 5.1.1 The email account that you tried to reach does not exist.',
    ],
    expected: 'hard unknown_user',
  },
  {
    what: 'Postfix, with Auto-Submitted (dada-mail#312)',
    headers: ['Auto-Submitted: auto-replied', 'Subject: Undelivered Mail Returned to Sender'],
    fields: failed(
      '5.1.1',
      '550 5.1.1 <ann@there.invalid>: Recipient address rejected: User unknown in virtual table',
    ),
    expected: 'hard unknown_user',
  },
  {
    what: 'an automatic reply (fixmystreet#2336)',
    ...person,
    headers: ['Auto-Submitted: auto-replied', 'Subject: Re: Your order'],
    text: ['Your message could not be delivered to my desk today.'],
    expected: 'delivered',
  },
  {
    what: 'out of office from the empty sender (mailtrain#114)',
    from: 'Ann <ann@there.invalid>',
    headers: ['Subject: Automatic reply: Your order'],
    text: ['I am out of office. Your message was not delivered to anybody else.'],
    expected: 'delivered',
  },
  {
    what: 'Microsoft 365, the cause in the text alone (rb-sisimai#91)',
    text: [
      "Your message to ann@there.invalid couldn't be delivered.",
      '',
      "ann wasn't found at there.invalid.",
      '',
      'Reported error:    550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
    ],
    expected: 'hard unknown_user',
  },
  {
    what: 'X-Supplementary-Info (p5-sisimai#312)',
    fields: [...failed('5.0.0'), 'X-Supplementary-Info: <192.0.2.1 #5.0.0 smtp; 550 "Unknown User">'],
    expected: 'hard unknown_user',
  },
  {
    what: 'X-Supplementary-Info of a disabled mailbox (p5-sisimai#312)',
    fields: [
      ...failed('5.0.0'),
      'X-Supplementary-Info: <mx #5.0.0 smtp; 554 This\r\n mailbox is disabled (554.30)>',
    ],
    expected: 'hard mailbox_disabled',
  },
  {
    what: 'IronPort: unknown, behind its own words (p5-sisimai#409)',
    fields: failed(
      '5.1.0',
      "5.1.0 - Unknown address error 550-'5.1.1 Mailbox <ann@there.invalid> does not exist'",
    ),
    expected: 'hard unknown_user',
  },
  {
    what: 'Orange took it for spam (p5-sisimai#189)',
    fields: failed('5.2.0', '550 5.2.0 Mail rejete. Mail rejected. ofr_506 [506]'),
    expected: 'soft spam',
  },
  {
    what: 'Gmail, a domain that does not exist (emailengine#203)',
    fields: failed('4.0.0', "DNS Error: DNS type 'mx' lookup of there.invalid responded with code NXDOMAIN"),
    expected: 'hard dns',
  },
  {
    what: 'null MX in the words of Gmail (set-of-emails#4)',
    fields: failed(
      '5.1.2',
      "DNS Error: The domain there.invalid doesn't receive email according to the administrator",
    ),
    expected: 'hard dns',
  },
  {
    what: 'Malformed name server reply (set-of-emails#4)',
    fields: failed(
      '5.4.4',
      'Name service error for name=there.invalid type=MX: Malformed or unexpected name server reply',
    ),
    expected: 'soft dns',
  },
  {
    what: 'an error in the words of a program (purelymail#248)',
    fields: failed('5.0.0', 'error; NoMxHostFoundException: null'),
    expected: 'soft other',
  },
  {
    what: 'Gmail: unsolicited (postal#266)',
    fields: failed(
      '5.7.1',
      '550-5.7.1 Our system has detected that this message is\r\n 550 5.7.1 likely unsolicited mail.',
    ),
    expected: 'soft spam',
  },
  { what: '5.2.2 is full (cuttlefish#49)', fields: failed('5.2.2'), expected: 'soft mailbox_full' },
  {
    what: 'terra.com.br: both codes twice (port25-bouncehandler#8)',
    fields: failed('5.1.1', '550 5.1.1 5.1.1 <ann@there.invalid>: Recipient address rejected'),
    expected: 'hard unknown_user',
  },
  {
    what: 'a code in a mail that does not look like a bounce (hitobito#4369)',
    from: 'Example Ltd <office@there.invalid>',
    sender: 'office@there.invalid',
    headers: ['Subject: About your mail'],
    fields: failed('5.1.1', '550 5.1.1 no such user'),
    expected: 'hard unknown_user',
  },
  {
    what: 'the domain of our sender (postal#641)',
    fields: failed(
      '5.1.8',
      '553 5.1.8 <a@rp.example>... Domain of sender address a@rp.example does not exist',
    ),
    expected: 'soft dns',
  },
  {
    what: 'expired, no connection (mautic#3154)',
    fields: failed('5.4.317', '550 5.4.317 Message expired, cannot connect to remote server'),
    expected: 'soft network',
  },
  {
    what: 'Exchange: hop count (mautic#2835)',
    fields: failed('5.4.6', '554 5.4.6 Hop count exceeded - possible mail loop'),
    expected: 'soft loop',
  },
  {
    what: 'no address in From (zammad#811)',
    from: 'Mail Delivery Subsystem',
    text: ['Your message could not be delivered to ann@there.invalid: user unknown'],
    expected: 'hard unknown_user',
  },
  {
    what: 'a person who asks what a bounce means (writetothem#185)',
    ...person,
    headers: ['Subject: Re: Fwd: failure notice'],
    text: [
      'What is this?',
      '',
      ...hi,
      '',
      '<bob@example.org>:',
      'Sorry, no mailbox here by that name. (#5.1.1)',
    ],
    expected: 'delivered',
  },
];

async function outcomeOf(world: ReturnsWorld, one: Case, recipient: string): Promise<string> {
  const { emailId, path } = await world.delivered(recipient);
  const mail = mailOf(one).replaceAll('ann@there.invalid', recipient);
  await world.comesBack(path, mail, one.sender ?? '');
  const [{ status, bounce }] = (await world.get(emailId)).recipients;
  const suppressed = await world.db('suppressions').where({ address: recipient });
  const isHard = bounce?.type === 'hard';
  if (isHard !== suppressed.length > 0) return `${status}, suppressed ${suppressed.length}`;
  return bounce ? `${bounce.type} ${bounce.category}` : status;
}

test('bounces that other senders judged wrongly', async (t) => {
  const world = await startReturns(t, {});
  for (const [index, one] of cases.entries())
    t.is(await outcomeOf(world, one, `ann${index}@there.invalid`), one.expected, one.what);
});
