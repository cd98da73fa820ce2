/**
 * Bounces of kinds that were misread: words that nobody tuned a rule to, reports in unusual wrapping, text in other languages.
 * From bug reports against bounce parsers (sisimai, flufl.bounce, Mail::DeliveryStatus::BounceParser, Mautic) and mailing lists.
 */
import test from 'ava';
import { costsAtMost } from '#lab/cost.ts';
import { picture, table } from '#lab/table.ts';
import { classifyBounce } from '#mail/deliver/outcome.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';

const body = (...lines: string[]) => lines.join('\r\n');

function mail(headers: string[], ...lines: string[]): Buffer {
  const fixed = ['Return-Path: <>', 'From: MAILER-DAEMON@mx.example.org', 'To: bounce@sender.invalid'];
  return Buffer.from(body(...fixed, ...headers, '', ...lines));
}

async function read(bytes: Buffer) {
  const reading = await readMail(bytes, 'return-path', true);
  return reading.kind === 'failed' ? `${reading.bounce.type} ${reading.bounce.category}` : reading.kind;
}

function report(fields: string[], text = 'Your message could not be delivered.'): string[] {
  return [
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    text,
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.example.org',
    '',
    'Final-Recipient: rfc822; ann@example.org',
    ...fields,
    '--b--',
    '',
  ];
}
const reportType = 'Content-Type: multipart/report; report-type=delivery-status; boundary=b';
const diagnosed = (code: string, status = '5.0.0') =>
  mail([reportType], ...report(['Action: failed', `Status: ${status}`, `Diagnostic-Code: smtp; ${code}`]));

const atRcpt: [code: number, text: string, enhanced: string | null, expected: string][] = table(
  'bounces/refused-recipients',
);

for (const [code, text, enhanced, expected] of atRcpt) {
  test(`returned: ${code} ${text}: ${expected}`, (t) => {
    const { type, category } = classifyBounce('rcpt', { code, enhanced, text });
    t.is(`${type} ${category}`, expected);
  });
}

test('a cause in the prose of a report whose fields name none', async (t) => {
  const fields = ['Action: failed', 'Status: 5.5.0'];
  const of = (text: string) => read(mail([reportType], ...report(fields, text)));
  t.is(await of('   ----- Transcript -----\r\nmail.local: unknown user: ann'), 'hard unknown_user');
  t.is(await of('The mailbox of the recipient is over quota.'), 'soft mailbox_full');
  t.is(await of('Something went wrong.'), 'soft protocol');
  t.is(await of('Your message was rejected by 192.0.2.1.'), 'soft protocol');
  t.is(await of('Your message was rejected.\r\nmail.local: unknown user: ann'), 'hard unknown_user');
  const copy = '--- Below this line is a copy of the message.\r\nthat user does not exist';
  t.is(await of(`Something went wrong.\r\n${copy}`), 'soft protocol', 'our own words say nothing');
});

test('the recipient and the reason in texts of Exchange, Stalwart and a server with a telephone', async (t) => {
  const reading = async (...lines: string[]) => {
    const found = await readMail(mail(['Subject: failure'], ...lines), 'return-path', true);
    return found.kind === 'failed'
      ? `${found.recipient} ${found.bounce.type} ${found.bounce.category}`
      : found.kind;
  };
  const exchange = [
    '      ann@example.org on 01/02/2012 10:00',
    '            <relay.x #5.5.0 smtp;554 5.7.1 Relay access denied>',
  ];
  const unreached = 'The following recipient(s) could not be reached:';
  t.is(
    await reading('Your message did not reach them.', '', unreached, '', ...exchange),
    'ann@example.org soft policy',
  );
  const stalwart =
    "<ann@example.org> (host 'mx.example.org' rejected command 'RCPT TO' with code 550 (5.1.1) 'User unknown')";
  t.is(
    await reading('Your message could not be delivered:', '', stalwart),
    'ann@example.org hard unknown_user',
  );
  const help = ['The mail could not be delivered. Please contact', 'Customer Support at 480-624-2500.', ''];
  const full = "child status 100...the user's mailfolder is full.";
  t.is(await reading(...help, '<ann@example.org>:', full), 'ann@example.org soft mailbox_full');
  const bare = [
    'Return-Path: <>',
    'From: ann@example.org',
    'Subject: Returned mail',
    '',
    'Remote host said: 500 User does not exist',
  ];
  const found = await readMail(Buffer.from(body(...bare)), 'return-path', true);
  t.is(found.kind, 'failed');
});

test('fields that name a cause are not overruled by the prose', async (t) => {
  const fields = ['Action: failed', 'Status: 5.7.1', 'Diagnostic-Code: smtp; 550 5.7.1 spam'];
  const prose = 'If you think this is an error: the user does not exist.';
  t.is(await read(mail([reportType], ...report(fields, prose))), 'soft spam');
});

test('words of a report outside Diagnostic-Code', async (t) => {
  const of = (...fields: string[]) => read(mail([reportType], ...report(['Action: failed', ...fields])));
  const exchange = (reply: string) =>
    of('Status: 5.0.0', `X-Supplementary-Info: <mx.example.org #5.0.0 smtp; ${reply}>`);
  t.is(await exchange('550 "Unknown User"'), 'hard unknown_user');
  t.is(await exchange('554 delivery error: dd This mailbox is disabled (554.30)'), 'hard mailbox_disabled');
  t.is(
    await exchange(
      '550 5.4.1 [ann@example.org]:\r\n Recipient address rejected: Access\r\n denied [MX1.eop-APC01.prod.protection.outlook.com]',
    ),
    'hard unknown_user',
  );
  t.is(await exchange('550 5.7.1 Service unavailable; client blocked using bl.example'), 'soft blocked');
  const said = 'Diagnostic-Code: smtp; 554 Transaction failed';
  t.is(await of('Status: 5.0.0', said, 'X-Smtp-Response: 550 5.1.1 no such user'), 'hard unknown_user');
  t.is(await of('Status: 5.0.0', said, 'X-Postfix-Queue-ID: 450 4F2C'), 'soft other');
});

test('a report with neither action nor status says what its reply says', async (t) => {
  const of = (...fields: string[]) => read(mail([reportType], ...report(fields)));
  t.is(await of('Diagnostic-Code: smtp; 550 no such user'), 'hard unknown_user');
  t.is(await of('Diagnostic-Code: smtp; 450 mailbox busy'), 'delayed');
  t.is(await of('Diagnostic-Code: smtp; 250 ok'), 'arrived');
});

test('a reply behind other prose', async (t) => {
  const said = [
    'The host said 550',
    'It answered 550',
    'The server responded with the code 550',
    'SMTP error, RCPT TO said 550',
  ];
  for (const words of said) {
    t.is(await read(diagnosed(`${words} sorry, ann is not a user here`)), 'hard unknown_user', words);
    t.is(await read(diagnosed(`${words} 5.2.2 full`)), 'soft mailbox_full', words);
  }
});

test('a report whose first block is the header of its part', async (t) => {
  const fields =
    'Reporting-MTA: dns; mx.example.org\r\n\r\nFinal-Recipient: rfc822; ann@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n';
  const with64 = ['Content-Transfer-Encoding: base64', '', Buffer.from(fields).toString('base64')];
  const withQuotes = [
    'Content-Transfer-Encoding: quoted-printable',
    '',
    fields.replace('failed', 'fai=\r\nl=65d'),
  ];
  // A scanner wrote it below the fields, which it left as they were.
  const recipient = fields.slice(fields.indexOf('Final'));
  const below64 = [
    'Reporting-MTA: dns; mx.example.org',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from(recipient).toString('base64'),
  ];
  const not64 = ['Content-Transfer-Encoding: base64', '', ...fields.split('\r\n')];
  for (const block of [with64, withQuotes, below64, not64]) {
    t.is(
      await read(mail([reportType], '--b', 'Content-Type: message/delivery-status', '', ...block, '--b--')),
      'hard unknown_user',
    );
  }
});

test('what will be retried is delayed, whatever stands before it', async (t) => {
  const of = (...lines: string[]) => read(mail(['Subject: Delivery problem'], ...lines));
  const opening = ['Delivery to the following recipient failed permanently:', '', '     ann@example.org', ''];
  t.is(await of(...opening, 'Message will be retried for 2 more day(s)'), 'delayed');
  t.is(
    await of(
      'Your message could not be delivered.',
      '550 no such user',
      'Gmail will retry for 46 more hours.',
    ),
    'delayed',
  );
  const gmail =
    'There was a temporary problem delivering your message to ann@example.org. Gmail will retry for 46 more hours.';
  t.is(await of('** Delivery incomplete **', '', gmail), 'delayed');
  t.is(await of(...qmail, 'The message will not be retried.'), 'hard unknown_user');
  const copy = ['--- Below this line is a copy of the message.', '', 'It will be retried.'];
  t.is(await of(...qmail, ...copy), 'hard unknown_user', 'our own words say nothing');
});

test('a user who does not exist, but will be delivered to, lives', async (t) => {
  t.is(await read(diagnosed('550 User unknown, but will deliver to bob@example.org')), 'soft other');
  t.is(
    await read(diagnosed('550 ann does not exist here but we will forward the message to its new address')),
    'soft other',
  );
  t.is(await read(diagnosed('550 User unknown, we will not deliver to it')), 'hard unknown_user');
});

const named: [place: string, lines: string[]][] = [
  ['alone', ['Your message could not be delivered to:', '', 'ann@example.org', '', 'No such user']],
  ['in brackets', ['Your message could not be delivered.', '<ann@example.org>:', 'No such user']],
  [
    'quoted, with a link',
    ['Undeliverable mail', "'ann@example.org'<mailto:ann@example.org>", 'No such user'],
  ],
  ['before the reason', ['Undeliverable mail', 'ann@example.org: no such user']],
  [
    'in a sentence',
    [
      "Your message couldn't be delivered to ann@example.org. No such user. Write to postmaster@mx.example.org",
    ],
  ],
  ['beside a helper', ['Undeliverable mail', 'postmaster@example.net', 'ann@example.org', 'no such user']],
];
for (const [place, lines] of named) {
  test(`the address that failed: ${place}`, async (t) => {
    const reading = await readMail(mail(['Subject: failure notice'], ...lines), 'return-path', true);
    t.is(reading.kind === 'failed' && reading.recipient, 'ann@example.org');
  });
}

test('every address that failed is read, so that ours is among them', async (t) => {
  const lines = ['<bob@example.org>:', 'No such user.', '', '<ann@example.org>:', 'No such user.'];
  const reading = await readMail(mail([], ...qmail.slice(0, 3), '', ...lines), 'return-path', true);
  t.like(reading, {
    kind: 'failed',
    recipient: 'bob@example.org',
    others: [{ recipient: 'ann@example.org' }],
  });
});

test('a 450 that has become final', async (t) => {
  const code = '450 4.1.1 <ann@example.org>: Recipient address rejected: User unknown in local table';
  t.is(await read(diagnosed(code, '4.1.1')), 'hard unknown_user');
  const inactive =
    '450 4.2.1 <ann@example.org>: Recipient address rejected: this mailbox is inactive and has been disabled';
  t.is(await read(diagnosed(inactive, '4.2.1')), 'hard mailbox_disabled');
  t.is(await read(diagnosed('450 4.2.1 mailbox temporarily disabled', '4.2.1')), 'soft mailbox_disabled');
  t.is(await read(diagnosed('450 4.2.0 Greylisted', '4.2.0')), 'soft greylisting');
  t.is(await read(diagnosed('451 4.3.0 lookup failed', '4.3.0')), 'soft unavailable');
});

test('a complete report that a gateway has wrapped', async (t) => {
  const inner = diagnosed('550 5.1.1 no such user', '5.1.1').toString();
  const wrapper = (type: string, text: string) =>
    mail(
      ['Subject: Notification', 'Content-Type: multipart/mixed; boundary=w'],
      ...[
        '--w',
        'Content-Type: text/plain',
        '',
        text,
        '--w',
        `Content-Type: ${type}`,
        '',
        inner,
        '--w--',
        '',
      ],
    );
  t.is(await read(wrapper('message/rfc822', 'Message from the gateway')), 'hard unknown_user');
  t.is(
    await read(wrapper('message/rfc822; name=mail.eml', 'Your message could not be delivered.')),
    'hard unknown_user',
  );
  const quoted = inner.slice(inner.indexOf('Reporting-MTA')).replace(/^/gm, '> ');
  t.is(await read(mail(['Subject: Fwd: Returned mail'], 'See below.', quoted)), 'hard unknown_user');
});

test('a wrapped mail that is no report says nothing', async (t) => {
  const ours = body('Subject: Hello', 'Content-Type: text/plain', '', 'The user does not exist.');
  const bytes = mail(
    ['Subject: Re: Hello', 'Content-Type: multipart/mixed; boundary=w'],
    ...['--w', 'Content-Type: text/plain', '', 'Thanks!', '--w', 'Content-Type: message/rfc822', '', ours],
  );
  t.is(await read(bytes), 'letter');
});

const html = (text: string) => `<html><head><style>p {color: red}</style></head><body>${text}</body></html>`;
const htmlOnly: [what: string, text: string, expected: string][] = table('bounces/html-alone');
for (const [what, text, expected] of htmlOnly) {
  test(`HTML alone: ${what}`, async (t) => {
    const headers = ['Content-Type: text/html; charset=utf-8'];
    t.is(await read(mail(headers, html(text))), expected);
  });
}

const qmail = picture('mail/qmail');
test('the words of qmail in a multipart', async (t) => {
  const mixed = ['Subject: failure notice', 'Content-Type: multipart/mixed; boundary=q'];
  const copy = ['--q', 'Content-Type: message/rfc822', '', 'Subject: Hello', '', 'user unknown', '--q--', ''];
  const withHeader = ['--q', 'Content-Type: text/plain; charset=us-ascii', '', ...qmail, ...copy];
  t.is(await read(mail(mixed, ...withHeader)), 'hard unknown_user');
  t.is(await read(mail(mixed, '--q', ...qmail, ...copy)), 'hard unknown_user', 'no header of the part');
  t.is(await read(mail(mixed, '--q', '', ...qmail, ...copy)), 'hard unknown_user');
  t.is(await read(mail(['Subject: failure notice'], ...qmail)), 'hard unknown_user');
  const nameless = ['Hi. This is the qmail-send program.', ...qmail.slice(1)];
  t.is(await read(mail(['Subject: failure notice'], ...nameless)), 'hard unknown_user');
});

const exchange = 'From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@example.org>';
const prose: [language: string, heading: string, words: string, expected: string][] =
  table('bounces/exchange-prose');
for (const [language, heading, words, expected] of prose) {
  test(`Exchange without its report: ${language}`, async (t) => {
    const headers = ['Content-Type: text/plain; charset=utf-8'];
    const bytes = mail(headers, heading, '', 'ann@example.org', words);
    const asExchange = bytes.toString().replace(/^From: .*$/m, exchange);
    t.is(await read(Buffer.from(asExchange)), expected);
  });
}

test.serial('long and odd mail takes no time', async (t) => {
  const texts = [
    'user '.repeat(20_000),
    'address is '.repeat(9000),
    'empfänger a b c d '.repeat(5000),
    '&#1;'.repeat(30_000),
    'message to a@b'.repeat(6000),
    'a@a.'.repeat(20_000),
    `a@b${' '.repeat(60_000)}x`,
    `<a@b> (generated from ${'a@b '.repeat(15_000)}`,
    'an automated message '.repeat(4000),
    'email '.repeat(12_000),
  ];
  const readAll = async () => {
    for (const text of texts) await read(mail(['Content-Type: text/html'], `undeliverable ${text}`));
  };
  await costsAtMost(t, 5_000, readAll);
});
