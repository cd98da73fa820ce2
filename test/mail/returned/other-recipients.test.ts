/** Reports about an address that the recipient's server passed the mail on to: an event, and no suppression. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startReturns, typesOf } from '#lab/scenes/returns.ts';
import { failureOf, isSameMailbox } from '#mail/returned/failed-recipient.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';

const team = 'team@there.invalid';

const spellings: [named: string, ours: string, isSame: boolean][] = [
  ['team@there.invalid', team, true],
  ['TEAM@There.Invalid', team, true],
  ['<team@there.invalid>', team, true],
  ['Team <team@there.invalid>', team, true],
  ['"team"@there.invalid', team, true],
  ['"team@there.invalid"', team, true],
  ["'team@there.invalid'", team, true],
  ['team@there.invalid.', team, true],
  ['team@there.invalid (the team)', team, true],
  ['@mx.there.invalid:team@there.invalid', team, true],
  ['<@a.invalid,@b.invalid:team@there.invalid>', team, true],
  ['rfc822;team@there.invalid', team, true],
  ['SMTP:team@there.invalid', team, true],
  ['team@there.invalid', 'team+news@there.invalid', true],
  ['team+2Bnews@there.invalid', 'team+news@there.invalid', true],
  ['gr\\x{FC}n@there.invalid', 'grün@there.invalid', true],
  ['team@xn--bcher-kva.invalid', 'team@bücher.invalid', true],
  ['team', team, true],
  ['/o=There/ou=Site/cn=team', team, true],
  ['bob', team, false],
  ['bob@there.invalid', team, false],
  ['team@elsewhere.invalid', team, false],
  ['Team@there.invalid <bob@elsewhere.invalid>', team, false],
  ['bob@[192.0.2.1]', team, false],
  ['b+team=there.invalid@there.invalid', team, false],
];

for (const [named, ours, isSame] of spellings) {
  test(`${named} is ${isSame ? '' : 'not '}${ours}`, (t) => t.is(isSameMailbox(named, ours), isSame));
}

const report = (...recipients: string[]) => `From: MAILER-DAEMON@mx.there.invalid
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b

This is the mail system at host mx.there.invalid.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.there.invalid

${recipients.join('\n\n')}
--b--
`;
const failed = 'Action: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown';
const original = `Original-Recipient: rfc822;${team}`;
const final = (address: string) => `Final-Recipient: rfc822; ${address}`;
const delivered = 'Action: delivered\nStatus: 2.0.0';
const text = (words: string, head = '') => `From: Mail Delivery System <MAILER-DAEMON@mx.there.invalid>
Subject: Mail delivery failed: returning message to sender
${head}
This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

${words}
`;

const reports: [what: string, raw: string, isOurs: boolean][] = [
  [
    'one member failed, another has it',
    report(
      `${final('bob@there.invalid')}\n${original}\n${failed}`,
      `${final('carol@there.invalid')}\n${original}\n${delivered}`,
    ),
    false,
  ],
  ['a forward', report(`${final('bob@elsewhere.invalid')}\n${original}\n${failed}`), false],
  ['without an original recipient', report(`${final('bob@elsewhere.invalid')}\n${failed}`), false],
  ['ours', report(`${final('<TEAM@there.invalid>')}\n${failed}`), true],
  [
    'ours beside another that failed before it',
    report(`${final('bob@there.invalid')}\n${failed}`, `${final(team)}\n${original}\n${failed}`),
    true,
  ],
  ['an original recipient alone', report(`${original}\n${failed}`), true],
  ['an original recipient in other words', report(`Original-Recipient: rfc822;x@y.invalid\n${failed}`), true],
  [
    'an expansion',
    report(`${final(team)}\nAction: expanded\nStatus: 2.0.0`, `${original}\n${failed}`),
    false,
  ],
  [
    'nobody is named, and somebody has it',
    report(`${original}\n${delivered}`, `${original}\n${failed}`),
    false,
  ],
  [
    "Exim's child of an alias",
    text(`  bob@elsewhere.invalid\n    (generated from ${team})\n    host mx said: 550 5.1.1 User unknown`),
    false,
  ],
  [
    "Exim's hidden child",
    text(
      `  an undisclosed address\n    (ultimately generated from ${team})\n    550 5.1.1 User unknown`,
      `X-Failed-Recipients: ${team}\n`,
    ),
    false,
  ],
  [
    'X-Failed-Recipients of others',
    text('  550 5.1.1 User unknown', 'X-Failed-Recipients: bob@there.invalid,\n carol@there.invalid\n'),
    false,
  ],
  [
    'X-Failed-Recipients with ours',
    text('  550 5.1.1 User unknown', `X-Failed-Recipients: bob@there.invalid,\n ${team}\n`),
    true,
  ],
  [
    "Postfix's and Sendmail's expansion",
    text(`<bob@there.invalid>\n    550 5.1.1 User unknown (expanded\n    from: <${team}>)`),
    false,
  ],
];

for (const [what, raw, isOurs] of reports) {
  test(`${what}: ${isOurs ? 'a bounce of ours' : 'about another address'}`, async (t) => {
    const reading = await readMail(Buffer.from(raw.replaceAll('\n', '\r\n')), 'return-path', true);
    if (reading.kind !== 'failed') return t.fail(`read as ${reading.kind}`);
    t.is(failureOf(team, reading) !== null, isOurs);
    t.like(failureOf(team, reading) ?? reading, { bounce: { type: 'hard', category: 'unknown_user' } });
  });
}

test('a dead member of a list makes events, a few of them, and suppresses nobody', async (t) => {
  const world = await startReturns(t, {});
  const { json, cli } = cliOf(t, world);
  const { emailId, path } = await world.delivered(team);
  const about = (name: string) =>
    report(
      `${final(name)}\n${original}\n${failed}`,
      `${final('carol@there.invalid')}\n${original}\n${delivered}`,
    );
  await world.comesBack(path, about('bob@elsewhere.invalid'));
  await world.comesBack(path, about('bob@elsewhere.invalid'));
  for (let n = 0; n < 12; n++) await world.comesBack(path, about(`m${n}@elsewhere.invalid`));

  const email = await world.get(emailId);
  t.is(email.status, 'delivered');
  t.is(email.recipients[0].bounce, null);
  const forwards = Array.from({ length: 10 }, () => 'email.forward_failed');
  t.deepEqual(typesOf(email), ['email.queued', 'email.delivered', ...forwards]);
  t.like(email.events[2].data, {
    bounce: { type: 'hard', category: 'unknown_user' },
    returned: { recipient: 'bob@elsewhere.invalid', format: 'status-report' },
  });
  t.deepEqual(await json('suppression list --org Tenant'), []);
  t.is((await world.send({ to: team, subject: 'Again' })).status, 200);
  t.regex((await cli('email why', emailId)).stdout.toString(), /delivered/i);

  // What the members' reports say does not hide the end of the address itself.
  await world.comesBack(path, report(`${final(team)}\n${failed}`));
  t.is((await world.get(emailId)).status, 'bounced');
  t.is((await json('suppression list --org Tenant')).length, 1);
});
