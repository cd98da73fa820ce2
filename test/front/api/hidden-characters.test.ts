/** Characters that nobody sees in an address are refused by name, with the place, in every way in; blanks around one are not. */

import test from 'ava';
import Mailgun from 'mailgun.js';
import { ServerClient } from 'postmark';
import { Resend } from 'resend';
import { readAddresses } from '#accounts/suppression-csv.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { loggedIn, startSubmission, submit, tenantOf } from '#lab/scenes/submission.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { mailAddress, mailboxOrOff } from '#platform/settings/grammar.ts';
import { compareKey, domainOf, parseMailbox, toDomain } from '#platform/values/address.ts';
import { hasHidden, trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';

/** All that RFC 8264 disallows and Unicode calls ignorable, some of each kind. */
const hidden: [code: number, name: string][] = [
  [0xa0, 'no-break space'],
  [0xad, 'soft hyphen'],
  [0x34f, 'invisible character'],
  [0x61c, 'Arabic letter mark'],
  [0x115f, 'invisible character'],
  [0x180e, 'invisible character'],
  [0x2009, 'blank'],
  [0x200b, 'zero width space'],
  [0x200c, 'zero width non-joiner'],
  [0x200d, 'zero width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x2028, 'blank'],
  [0x202a, 'left-to-right embedding'],
  [0x202e, 'right-to-left override'],
  [0x2060, 'word joiner'],
  [0x2063, 'invisible character'],
  [0x2066, 'left-to-right isolate'],
  [0x2069, 'pop directional isolate'],
  [0x2800, 'character'],
  [0x3164, 'invisible character'],
  [0xe000, 'character'],
  [0xfe0f, 'invisible character'],
  [0xfeff, 'byte order mark'],
  [0xffa0, 'invisible character'],
  [0xfffd, 'replacement character'],
  [0xffff, 'character'],
  [0xe0041, 'invisible character'],
];

for (const [code, name] of hidden) {
  const character = String.fromCodePoint(code);
  const written = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  test(`${name} (${written}) is in no address and no domain`, (t) => {
    const address = `an${character}n@there.invalid`;
    for (const one of [address, `"an${character}n"@there.invalid`, `ann@the${character}re.invalid`]) {
      t.is(domainOf(one), null);
      t.is(parseMailbox(`Ann <${one}>`), null);
    }
    t.is(toDomain(`the${character}re.invalid`), null);
    t.is(withoutHidden(address), `, without the ${name} (${written}) at character 3`);
    t.is(compareKey(address), `${`an${character}n`.normalize('NFC').toLowerCase()}@there.invalid`);
  });
}

test('line ends are named, but not those of folding', (t) => {
  t.is(withoutHidden('a@b.invalid\r\n'), ', without the carriage return (U+000D) at character 12');
  t.is(withoutHidden('a\u0000@b.invalid'), ', without the control character (U+0000) at character 2');
  t.is(withoutHidden('Ann\r\n <a@b.invalid'), '');
});

test('letters of every script are seen, and so are joiners between them', (t) => {
  for (const address of [
    'grün@there.invalid',
    'ｱﾝ@there.invalid',
    'अक्\u200dष@there.invalid',
    'می\u200cخواهم@there.invalid',
  ])
    t.is(domainOf(address), 'there.invalid', address);
  t.false(hasHidden('한국@한국.invalid'.normalize('NFD')));
  t.is(trimBlanks('\u00a0 \t ann@there.invalid \u3000'), 'ann@there.invalid');
  t.is(trimBlanks('\ufeffann@there.invalid'), '\ufeffann@there.invalid');
});

const bad = 'a\u200bnn@there.invalid';
const place = 'without the zero width space (U+200B) at character 2';

test('our API: each list by name; blanks around are trimmed', async (t) => {
  const world = await startWorld(t);
  const good = { to: 'ann@there.invalid', from: 'app@sender.invalid', subject: 'Hi', text: 'Hi' };
  for (const [member, path] of Object.entries({ to: 'to.1', cc: 'cc.1', bcc: 'bcc.1' })) {
    const { status, body } = await world.send({ ...good, [member]: ['cid@there.invalid', bad] });
    t.is(status, 400);
    t.is(body.issues[0].message, `${path}: must be a plain email address, ${place}`);
  }
  const issue = async (fields: object) => (await world.send({ ...good, ...fields })).body.issues[0].message;
  t.is(await issue({ to: bad }), `to: must be a plain email address, ${place}`);
  // An address that was read from a file or a table, with the end of its line.
  const line = 'without the line feed (U+000A) at character 18';
  t.is(await issue({ to: 'ann@there.invalid\n' }), `to: must be a plain email address, ${line}`);
  t.is(await issue({ replyTo: bad }), `replyTo: must be a plain email address, ${place}`);
  t.is(
    await issue({ headers: { 'Reply-To': bad } }),
    `headers.Reply-To: the value of Reply-To must be a single address, ${place}`,
  );
  const sender = await world.send({ ...good, from: 'App <app@sender\u00ad.invalid>' });
  t.is(sender.body.error, 'BAD_REQUEST');
  t.regex(sender.body.message, /, without the soft hyphen \(U\+00AD\) at character 16\.$/);
  const sent = await world.send({
    ...good,
    to: [' ann@there.invalid\t', '\u00a0bob@there.invalid\u3000'],
    from: ' App < app@sender.invalid > ',
    replyTo: ' help@sender.invalid ',
  });
  t.is(sent.status, 200);
  t.deepEqual(sent.body.accepted, ['ann@there.invalid', 'bob@there.invalid']);

  const post = async (path: string, body: object) =>
    (await world.call('POST', `/api/public/${path}`, { body: JSON.stringify(body) })).body;
  const messageOf = async (path: string, body: object) => (await post(path, body)).issues[0].message;
  t.is(await messageOf('suppressions', { address: bad }), `address: must be an email address, ${place}`);
  t.is(
    (await post('suppressions', { address: ' Dan@there.invalid ' })).suppression.address,
    'Dan@there.invalid',
  );
  t.regex(
    await messageOf('domains', { name: 'n\u200bew.invalid' }),
    new RegExp(`^name: .*, ${place.replace(/[()+]/g, '\\$&')}$`),
  );
  t.is((await post('domains', { name: ' new.invalid ' })).domain.name, 'new.invalid');
  const scopes = ['email:send', 'domain_scope:s\u200bender.invalid'];
  t.regex(await messageOf('keys', { label: 'x', scopes }), /without the zero width space/);
  const webhook = await post('webhooks', { url: 'https://app.example\u200b.com/hook' });
  t.regex(JSON.stringify(webhook), /without the zero width space \(U\+200B\) at character 20/);
  const csv = await world.call('POST', '/api/public/suppressions.csv', {
    body: `${bad}\n eve@there.invalid \n`,
    headers: { 'content-type': 'text/csv' },
  });
  t.like(csv.body, {
    added: 1,
    rejectedLines: [{ line: 1, text: 'a<zero width space (U+200B)>nn@there.invalid' }],
  });
});

test('lists and settings', async (t) => {
  const list = Buffer.from(`"ann@there.invalid "\n bob@there.invalid\t;x\n${bad}\n`);
  t.like(await readAddresses(list), { addresses: ['ann@there.invalid', 'bob@there.invalid'], rejected: 1 });
  t.is(mailAddress.read(' admin@example.org'), 'admin@example.org');
  for (const grammar of [mailAddress, mailboxOrOff])
    t.throws(() => grammar.read(bad), { message: /without the zero width space \(U\+200B\) at character 2/ });
});

test('the dialects, with their SDKs', async (t) => {
  const world = await startWorld(t);
  const url = world.url();
  const mail = { from: 'app@sender.invalid', subject: 'Hi', text: 'Hi' };
  const resend = new Resend(world.key, { baseUrl: url });
  const { error } = await resend.emails.send({ ...mail, to: bad });
  t.true(error!.message.includes(place), error!.message);
  t.is((await resend.emails.send({ ...mail, to: ` ann@there.invalid ` })).error, null);

  const postmark = new ServerClient(world.key, { requestHost: new URL(url).host, useHttps: false });
  const model = { From: mail.from, Subject: 'Hi', TextBody: 'Hi' };
  const message = `Invalid 'To' address: '${bad}'. Give it without the zero width space (U+200B) at character 2.`;
  await t.throwsAsync(postmark.sendEmail({ ...model, To: `bob@there.invalid, ${bad}` }), { message });
  t.is((await postmark.sendEmail({ ...model, To: ' bob@there.invalid , cid@there.invalid ' })).ErrorCode, 0);
  const { Suppressions } = await postmark.createSuppressions('outbound', {
    Suppressions: [{ EmailAddress: bad }, { EmailAddress: ' dan@there.invalid ' }],
  });
  t.deepEqual(
    Suppressions.map(({ Status, Message }) => [Status, Message]),
    [
      ['Failed', `This is not an email address, ${place}.`],
      ['Suppressed', null],
    ],
  );

  const mailgun = new Mailgun(FormData).client({ username: 'api', key: world.key, url });
  const refused = await t.throwsAsync(mailgun.messages.create('sender.invalid', { ...mail, to: [bad] }));
  t.true(String((refused as { details?: string }).details ?? refused).includes(place));
  t.truthy((await mailgun.messages.create('sender.invalid', { ...mail, to: [' eve@there.invalid '] })).id);

  const sendgrid = (email: string) =>
    fetch(`${url}/v3/mail/send`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        personalizations: [{ to: [{ email }] }],
        from: { email: mail.from },
        subject: 'Hi',
        content: [{ type: 'text/plain', value: 'Hi' }],
      }),
    });
  t.true((await (await sendgrid(bad)).text()).includes(place));
  t.is((await sendgrid(' finn@there.invalid ')).status, 202);
});

test('submission, the command line and the dashboard', async (t) => {
  const world = await startSubmission(t);
  const client = async () => loggedIn(await tenantOf(world));
  const talk = await client();
  await talk.says('MAIL FROM:<app@sender.invalid> SMTPUTF8\r\n', '250');
  t.regex(
    await talk.says(`RCPT TO:<${bad}>\r\n`, '553'),
    /without the zero width space \(U\+200B\) at character 2/,
  );
  await talk.says('RCPT TO:<ann@there.invalid>\r\n', '250');
  const from = 'From: app@sender.invalid';
  const lines = ['Subject: Hi', '', 'Hi'];
  const to = ['ann@there.invalid'];
  t.regex(
    await submit(await client(), to, [from.replace('app', 'a\u00adpp'), ...lines], '554'),
    /from: .*without the soft hyphen \(U\+00AD\) at character 2/,
  );
  t.regex(
    await submit(await client(), to, [from, `Reply-To: Help <${bad}>`, ...lines], '554'),
    /reply-to: .*without the zero width space/,
  );

  const { cli } = cliOf(t, world);
  const refused = await cli('suppression add', bad, '--org', 'Tenant');
  t.is(refused.code, 2);
  t.regex(refused.stderr, /without the zero width space \(U\+200B\) at character 2/);
  t.is((await cli('suppression add', ' dora@there.invalid ', '--org', 'Tenant')).code, 0);
  t.regex(
    (await cli('domain add', 'n\u00adew.invalid', '--org', 'Tenant')).stderr,
    /without the soft hyphen/,
  );

  const operator = createBrowser(world);
  await setUp(operator, world);
  const [{ id }] = await world.db('organizations').select('id');
  const page = async (path: string, fields: Record<string, string>) => {
    await operator.get(`/dashboard/o/${id}/${path}`);
    return (await operator.submit(`/${path}`, fields)).text;
  };
  const invited = await page('team', { email: bad, role: 'viewer' });
  t.true(invited.includes(`Enter an email address, such as ann@example.org, ${place}.`), invited);
  t.true((await page('suppressions', { address: bad })).includes(place));
  t.true((await page('domains', { name: 'n\u200bew.invalid' })).includes(place));
});
