/**
 * Bounces of kinds that were misread: words that nobody tuned a rule to, reports in unusual wrapping, text in other languages.
 * From bug reports against bounce parsers (sisimai, flufl.bounce, Mail::DeliveryStatus::BounceParser, Mautic) and mailing lists.
 */
import test from 'ava';
import { readMail } from '../../src/bounces/parse/parse-bounce.ts';
import { classifyBounce } from '../../src/outcome.ts';

const body = (...lines: string[]) => lines.join('\r\n');

function mail(headers: string[], ...lines: string[]): Buffer {
  const fixed = ['Return-Path: <>', 'From: MAILER-DAEMON@mx.example.org', 'To: bounce@sender.invalid'];
  return Buffer.from(body(...fixed, ...headers, '', ...lines));
}

async function read(bytes: Buffer) {
  const reading = await readMail(bytes, 'return-path', true);
  return reading.is === 'failed' ? `${reading.bounce.type} ${reading.bounce.category}` : reading.is;
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

const atRcpt: [code: number, text: string, enhanced: string | null, expected: string][] = [
  // Dead.
  [550, '<ann@example.org>: Recipient address rejected', null, 'hard unknown_user'],
  [550, 'Recipient address rejected.', '5.1.0', 'hard unknown_user'],
  [550, 'Address rejected', null, 'hard unknown_user'],
  [550, 'Recipient address rejected: Access denied', '5.4.1', 'hard unknown_user'],
  [550, 'Access denied', '5.4.1', 'hard unknown_user'],
  [550, 'Recipient rejected (G12)', null, 'hard unknown_user'],
  [550, '<ann@example.org> mailbox ann@example.org unavailable', null, 'hard unknown_user'],
  [550, 'mailbox ann@example.org unavailable', null, 'hard unknown_user'],
  [550, "User dosn't exist", null, 'hard unknown_user'],
  [550, 'Mailbox does not exsist', null, 'hard unknown_user'],
  [550, 'The recipient doesnt exist here', null, 'hard unknown_user'],
  [550, 'User ann does not exit', null, 'hard unknown_user'],
  [554, 'Nonexistent user', '5.7.1', 'hard unknown_user'],
  [550, 'Unkown user', null, 'hard unknown_user'],
  [550, 'unknow recipient ann', null, 'hard unknown_user'],
  [550, 'No such virtual user here', null, 'hard unknown_user'],
  [550, 'there is no user by that name', null, 'hard unknown_user'],
  [550, 'The email account you specified could not be found', null, 'hard unknown_user'],
  [550, 'This account has been closed', null, 'hard unknown_user'],
  [550, 'The mailbox is no longer in use', null, 'hard unknown_user'],
  [550, 'Benutzer hier nicht bekannt', null, 'hard unknown_user'],
  [550, "L'utilisateur est inconnu", null, 'hard unknown_user'],
  [550, 'La cuenta de correo no existe', null, 'hard unknown_user'],
  [550, 'De ontvanger is onbekend', null, 'hard unknown_user'],
  [550, 'Användaren finns inte', null, 'hard unknown_user'],
  [550, 'Uživatel neexistuje', null, 'hard unknown_user'],
  [550, 'Такого пользователя не существует', null, 'hard unknown_user'],
  [550, '用户不存在', null, 'hard unknown_user'],
  [450, 'ann@example.org: Recipient address rejected: User unknown', '4.1.1', 'hard unknown_user'],
  [521, 'Host does not accept mail', '5.3.2', 'hard dns'],
  [556, 'Recipient address has null MX', '5.1.10', 'hard dns'],
  [550, 'Domain example.org does not accept mail (nullMX)', null, 'hard dns'],
  [553, 'example.org does not exist', null, 'hard dns'],
  // Living, or not known to be dead.
  [550, 'Host or domain name not found. Name service error: Host not found, try again', '5.4.4', 'soft dns'],
  [550, 'Temporary failure in name resolution', null, 'soft dns'],
  [550, 'Sender address rejected: Access denied', '5.7.1', 'soft policy'],
  [550, 'Access denied', '5.7.1', 'soft policy'],
  [550, 'Client host rejected: Access denied', '5.7.1', 'soft blocked'],
  [550, 'Access denied, spam source', null, 'soft spam'],
  [550, 'Recipient address rejected: listed at bl.example', null, 'soft blocked'],
  [550, 'Recipient address rejected: refused for policy reasons', '5.7.1', 'soft policy'],
  [550, 'mailbox unavailable, try again later', null, 'soft unavailable'],
  [550, 'IP address is unknown', null, 'soft unknown_user'],
  [550, 'Sender address does not exist', null, 'soft policy'],
  [550, 'sender unknown', null, 'soft policy'],
  [550, 'Rejected if the recipient address is invalid', null, 'soft unknown_user'],
  [550, "Recipient's mailbox is full", null, 'soft mailbox_full'],
  [550, 'Das Postfach ist voll', null, 'soft mailbox_full'],
  [450, 'Greylisted, unknown user', '4.2.0', 'soft greylisting'],
  [450, 'try later', '4.1.1', 'soft unknown_user'],
  [550, 'Domain does not accept mail from bulk senders', '5.7.1', 'soft policy'],
  [
    550,
    'Sender address rejected: Domain sender.example does not accept mail (nullMX)',
    '5.7.27',
    'soft auth',
  ],
];

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
  const copy = '--- Below this line is a copy of the message.\r\nthat user does not exist';
  t.is(await of(`Something went wrong.\r\n${copy}`), 'soft protocol', 'our own words say nothing');
});

test('fields that name a cause are not overruled by the prose', async (t) => {
  const fields = ['Action: failed', 'Status: 5.7.1', 'Diagnostic-Code: smtp; 550 5.7.1 spam'];
  const prose = 'If you think this is an error: the user does not exist.';
  t.is(await read(mail([reportType], ...report(fields, prose))), 'soft spam');
});

test('a 450 that has become final', async (t) => {
  const code = '450 4.1.1 <ann@example.org>: Recipient address rejected: User unknown in local table';
  t.is(await read(diagnosed(code, '4.1.1')), 'hard unknown_user');
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
const htmlOnly: [what: string, text: string, expected: string][] = [
  [
    'entities',
    '<p>Your message couldn&rsquo;t be delivered to <b>ann@example.org</b>.</p><p>550 5.1.1 no&nbsp;such user</p>',
    'hard unknown_user',
  ],
  [
    'a curly apostrophe',
    '<h1>Delivery has failed to these recipients or groups:</h1><p>ann@example.org</p><p>The email address you entered couldn’t be found.</p>',
    'hard unknown_user',
  ],
  [
    'table',
    '<table><tr><td>Undeliverable mail</td></tr><tr><td>mailbox full</td></tr></table>',
    'soft mailbox_full',
  ],
];
for (const [what, text, expected] of htmlOnly) {
  test(`HTML alone: ${what}`, async (t) => {
    const headers = ['Content-Type: text/html; charset=utf-8'];
    t.is(await read(mail(headers, html(text))), expected);
  });
}

const qmail = [
  'Hi. This is the qmail-send program at mx.example.org.',
  "I'm afraid I wasn't able to deliver your message to the following addresses.",
  "This is a permanent error; I've given up. Sorry it didn't work out.",
  '',
  '<ann@example.org>:',
  'Sorry, no mailbox here by that name. (#5.1.1)',
  '',
];
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
const prose: [language: string, heading: string, words: string, expected: string][] = [
  [
    'English',
    'Delivery has failed to these recipients or groups:',
    "The e-mail address you entered couldn't be found.",
    'hard unknown_user',
  ],
  [
    'German',
    'Fehler bei der Nachrichtenzustellung an folgende Empfänger oder Verteilerlisten:',
    'Die eingegebene E-Mail-Adresse konnte nicht gefunden werden.',
    'hard unknown_user',
  ],
  [
    'French',
    'Échec de la remise pour les destinataires ou les groupes suivants :',
    "L'adresse de messagerie que vous avez entrée est introuvable.",
    'hard unknown_user',
  ],
  [
    'Spanish',
    'Error de entrega a estos destinatarios o grupos:',
    'No se encontró la dirección de correo electrónico especificada.',
    'hard unknown_user',
  ],
  [
    'Italian',
    'Recapito non riuscito per i seguenti destinatari o gruppi:',
    "L'indirizzo di posta elettronica immesso non è stato trovato.",
    'hard unknown_user',
  ],
  [
    'Portuguese',
    'Falha na entrega a estes destinatários ou grupos:',
    'O endereço de email que você inseriu não pôde ser encontrado.',
    'hard unknown_user',
  ],
  [
    'Dutch',
    'De bezorging aan de volgende geadresseerden of groepen is mislukt:',
    'Het e-mailadres dat u hebt ingevoerd is niet gevonden.',
    'hard unknown_user',
  ],
  [
    'Russian',
    'Не удалось доставить сообщение следующим получателям или группам:',
    'Указанный адрес электронной почты не найден.',
    'hard unknown_user',
  ],
  [
    'Japanese',
    '次の受信者またはグループへの配信に失敗しました:',
    '入力した電子メール アドレスが見つかりませんでした。',
    'hard unknown_user',
  ],
  ['Chinese', '未能向以下收件人或组传递邮件:', '找不到您输入的电子邮件地址。', 'hard unknown_user'],
  [
    'German, full',
    'Fehler bei der Nachrichtenzustellung an folgende Empfänger oder Verteilerlisten:',
    'Das Postfach des Empfängers ist voll.',
    'soft mailbox_full',
  ],
  [
    'French, with the diagnosis',
    'Échec de la remise pour les destinataires ou les groupes suivants :',
    'Informations de diagnostic :\r\n\r\nann@example.org\r\n#550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##',
    'hard unknown_user',
  ],
];
for (const [language, heading, words, expected] of prose) {
  test(`Exchange without its report: ${language}`, async (t) => {
    const headers = ['Content-Type: text/plain; charset=utf-8'];
    const bytes = mail(headers, heading, '', 'ann@example.org', words);
    const asExchange = bytes.toString().replace(/^From: .*$/m, exchange);
    t.is(await read(Buffer.from(asExchange)), expected);
  });
}

test('long and odd mail takes no time', async (t) => {
  const start = process.cpuUsage().user;
  const texts = [
    'user '.repeat(20_000),
    'address is '.repeat(9000),
    'empfänger a b c d '.repeat(5000),
    '&#1;'.repeat(30_000),
  ];
  for (const text of texts) await read(mail(['Content-Type: text/html'], `undeliverable ${text}`));
  t.true(process.cpuUsage().user - start < 5_000_000);
});
