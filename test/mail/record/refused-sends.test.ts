/** A send that is refused leaves a line in the mail log, and `email why ADDRESS` always has an answer. */
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { cliOf } from '#lab/cli.ts';
import { oneKind } from '#lab/database/databases.ts';
import { loggedIn, submissionWorlds, tenantOf, transportOf } from '#lab/scenes/submission.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

const submission = submissionWorlds([oneKind], { settings: { POSTERN_SUBMISSION_RECIPIENTS: '100' } });

const mail = { from: 'app@sender.invalid', subject: 's', text: 't' };

async function refused(world: World): Promise<{ msg: string; recipient?: string; category: string }[]> {
  const text = await readFile(mailLogFile(world.config.dataDir), 'utf8');
  return text
    .split('\n')
    .filter((line) => line.includes('"event":"refused"'))
    .map((line) => JSON.parse(line));
}

const lines = (world: World, count: number) =>
  until(async () => (await refused(world)).length >= count, { what: `${count} lines on refused sends` });

test('each refused send has a line with its recipient, code and key', async (t) => {
  const world = await startWorld(t);
  await addSuppression(world.db, suppressionOf(world.orgId, 'gone@there.invalid', 'asked'), 1);
  const send = (body: object, path = '/api/public/email/send') =>
    world.call('POST', path, { body: JSON.stringify(body) });
  t.is((await send({ ...mail, to: 'ann@there.invalid', from: 'a@elsewhere.invalid' })).status, 403);
  t.is((await send({ ...mail, to: ['bob@there.invalid'], subject: '' })).status, 400);
  t.is((await send({ ...mail, to: 'gone@there.invalid' })).status, 422);
  t.is((await send({ ...mail, to: ['gone@there.invalid', 'cid@there.invalid'] })).status, 200);
  const batch = await send(
    [
      { ...mail, to: 'dan@there.invalid' },
      { ...mail, to: 'eve@there.invalid', text: 7 },
    ],
    '/api/public/email/batch',
  );
  t.is(batch.status, 200);
  t.is(
    (await send({ From: mail.from, To: 'Fay <fay@there.invalid>' }, '/compat/postmark/email')).status,
    401,
  );
  const token = { headers: { 'x-postmark-server-token': world.key } };
  const postmark = { From: mail.from, To: 'Fay <fay@there.invalid>', Subject: 's' };
  t.is(
    (await world.call('POST', '/compat/postmark/email', { body: JSON.stringify(postmark), ...token })).status,
    422,
  );

  await lines(world, 6);
  const logged = await refused(world);
  t.deepEqual(
    logged.map(({ recipient, category }) => [recipient, category]),
    [
      ['ann@there.invalid', 'DOMAIN_NOT_FOUND'],
      ['bob@there.invalid', 'VALIDATION_ERROR'],
      ['gone@there.invalid', 'ALL_RECIPIENTS_SUPPRESSED'],
      ['gone@there.invalid', 'suppressed'],
      ['eve@there.invalid', 'VALIDATION_ERROR'],
      ['fay@there.invalid', 'VALIDATION_ERROR'],
    ],
  );
  t.regex(
    logged[0]!.msg,
    /^refused <ann@there\.invalid> 403 DOMAIN_NOT_FOUND key test: .*elsewhere\.invalid/,
  );
  t.regex(logged[1]!.msg, /subject/);

  const { cli, json } = cliOf(t, world);
  const text = (await cli('logs --to bob@there.invalid')).stdout.toString();
  t.regex(text, /"event":"refused"/);
  t.is((await json('logs --status refused')).length, 6);

  const gone = await json('email why gone@there.invalid');
  t.like(gone.suppressions, [{ organization: 'Tenant', reason: 'asked' }]);
  t.true(gone.refusals.length >= 1);
  const ann = await json('email why ann@there.invalid');
  t.is(ann.emailId, null);
  t.regex(ann.refusals[0].reason, /^403 DOMAIN_NOT_FOUND key test: /);
  const slip = await json('email why dna@there.invalid');
  t.deepEqual(slip.refusals, []);
  t.true(slip.nearest.includes('dan@there.invalid'));
  const words = (await cli('email why nn@there.invalid')).stdout.toString();
  t.regex(words, /No send to nn@there\.invalid was accepted or refused/);
  t.regex(words, /There was mail for ann@there\.invalid/);
  t.regex(words, /Emails are kept forever/);
});

test('a program that is refused in a loop does not fill the mail log', async (t) => {
  const world = await startWorld(t);
  const send = () => world.call('POST', '/api/public/email/send', { body: '{"to":"ann@there.invalid"}' });
  for (let times = 0; times < 70; times += 1) t.is((await send()).status, 400);
  await lines(world, 60);
  await world.clock.advance('61s');
  t.is((await send()).status, 400);
  await lines(world, 62);
  const logged = await refused(world);
  t.is(logged.length, 62);
  t.is(logged[60]!.msg, 'refused 10 more sends within a minute, which are not logged');
});

test('a send without credits is logged as refused', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 0 } });
  const body = JSON.stringify({ ...mail, to: 'ann@there.invalid' });
  t.is((await world.call('POST', '/api/public/email/send', { body })).status, 402);
  await lines(world, 1);
  t.like((await refused(world))[0], { recipient: 'ann@there.invalid', category: 'INSUFFICIENT_CREDITS' });
});

test('a mail that is refused over SMTP is logged with its recipients', async (t) => {
  const world = submission[oneKind];
  const tenant = await tenantOf(world);
  const transport = transportOf(tenant);
  t.teardown(() => transport.close());
  const message = { from: 'a@elsewhere.invalid', to: ['smtp@there.invalid', 'two@there.invalid'], text: 't' };
  await t.throwsAsync(transport.sendMail(message), { message: /550 5\.7\.1 DOMAIN_NOT_FOUND/ });
  const ours = async () =>
    (await refused(world)).filter(({ recipient }) => recipient === 'two@there.invalid');
  await until(async () => (await ours()).length > 0, { what: 'the line on the refused mail' });
  t.is((await ours())[0]!.category, 'DOMAIN_NOT_FOUND');
});

test('a mail that is refused over SMTP for its form or size is logged, too', async (t) => {
  const world = submission[oneKind];
  const tenant = await tenantOf(world);
  const talkTo = async (address: string) => {
    const talk = await loggedIn(tenant);
    await talk.says('MAIL FROM:<>\r\n', '250');
    await talk.says(`RCPT TO:<${address}>\r\n`, '250');
    return talk;
  };
  const reasonFor = (address: string) =>
    until(async () => (await refused(world)).find(({ recipient }) => recipient === address)?.msg, {
      what: `the line on the mail to ${address}`,
    });
  const bare = await talkTo('bare@there.invalid');
  await bare.says('DATA\r\n', '354');
  await bare.says('From: app@sender.invalid\n\nHi\r\n.\r\n', '521');
  t.regex(await reasonFor('bare@there.invalid'), /400 BAD_REQUEST key test: Bare CR or LF; a line must end/);
  const large = await talkTo('large@there.invalid');
  await large.says('DATA\r\n', '354');
  await large.says(`${`${'x'.repeat(998)}\r\n`.repeat(20 * 1049)}.\r\n`, '552');
  t.regex(await reasonFor('large@there.invalid'), /The message is larger than \d+ bytes$/);
  const many = await talkTo('many@there.invalid');
  for (let n = 1; n < 100; n += 1) await many.says(`RCPT TO:<many${n}@there.invalid>\r\n`, '250');
  await many.says('RCPT TO:<last@there.invalid>\r\n', '452');
  await many.says('DATA\r\n', '552');
  t.regex(
    await reasonFor('many@there.invalid'),
    /Nothing was sent: a message may have 100 recipients\..*90 more/,
  );
});
