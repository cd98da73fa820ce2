/** Mail that comes back: what it makes of its delivery, on both databases, and what it must not do. */
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { goldenMail, startReturns, typesOf } from '#lab/scenes/returns.ts';
import { until } from '#lab/until.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

test('a late bounce turns delivered into bounced, once, suppresses, and is kept', async (t) => {
  const world = await startReturns(t, {});
  const { json, cli } = cliOf(t, world);
  const { emailId, path } = await world.delivered();
  const bounce = goldenMail('postfix-unknown-user', path);
  // Some hosts answer in capitals; the second one is the first, sent again.
  await world.comesBack(path.toUpperCase(), bounce);
  await world.comesBack(path, bounce);
  await world.comesBack(path, goldenMail('gmail-report-full', path));

  const email = await world.get(emailId);
  const [recipient] = email.recipients;
  t.deepEqual(typesOf(email), ['email.queued', 'email.delivered', 'email.bounced']);
  t.is(recipient.status, 'bounced');
  t.truthy(recipient.deliveredAt);
  t.is(recipient.lastResponse.code, 250, 'what the host said in the session stays');
  t.like(recipient.bounce, { type: 'hard', category: 'unknown_user', fault: 'recipient' });
  t.regex(recipient.bounce.diagnostic, /^550 5\.1\.1 <ann@there\.invalid>: Recipient address rejected/);
  t.like(email.events[2].data, {
    bounce: recipient.bounce,
    returned: { reportedBy: 'mx.example.org', format: 'status-report', recipient: 'ann@there.invalid' },
  });

  const again = await world.send({ to: 'ann@there.invalid', subject: 'Again' });
  t.is(again.body.error, 'ALL_RECIPIENTS_SUPPRESSED');
  t.like(await json('suppression list --org Tenant'), [{ reason: 'hard bounce: unknown_user' }]);
  const [kept, ...more] = await json('returned list --email', emailId);
  t.deepEqual(more, []);
  t.like(kept, { kind: 'failed', emailId, emailTo: 'ann@there.invalid', sender: '' });
  t.true((await cli('returned source', kept.id)).stdout.includes(bounce.subarray(0, 200)));
  t.regex(
    (await cli('email why', emailId)).stdout.toString(),
    /returned as a bounce message [^"]+"550 5\.1\.1 .*a hard bounce \(unknown_user\)/,
  );
  const bounced = async () =>
    (await readFile(mailLogFile(world.config.dataDir), 'utf8')).match(/"event":"bounced"/g)?.length;
  t.is(await until(bounced), 1, 'and is told once in the mail log, which is written a moment later');
  t.is(world.mx[0]!.messages.length, 1, 'nothing but our own mail was sent');
});

test('delays, receipts, automatic answers and letters change nothing', async (t) => {
  const world = await startReturns(t, {});
  const { json } = cliOf(t, world);
  const { emailId, path } = await world.delivered();
  const before = await world.get(emailId);
  const names = [
    'postfix-delayed',
    'postfix-relayed',
    'exim-old-warning',
    'left-the-company',
    'read-receipt',
  ];
  for (const name of [...names, 'out-of-office-german', 'arf-not-spam', 'letter-reply']) {
    await world.comesBack(path, goldenMail(name, path));
  }
  t.deepEqual(await world.get(emailId), before);
  // What nobody could read is kept for people, a few of them.
  for (let n = 0; n < 4; n++) await world.comesBack(path, goldenMail('letter-reply', path));
  t.deepEqual(
    (await json('returned list')).map(({ kind }: { kind: string }) => kind),
    ['letter', 'letter', 'letter'],
  );
  const log = await readFile(mailLogFile(world.config.dataDir), 'utf8');
  t.is(log.match(/"event":"deferred"/g)?.length, 2, 'the delays');
  t.is(world.mx[0]!.messages.length, 1, 'nothing but our own mail was sent');
});

test('nothing in a mail marks a delivery but the address it came to, or our key', async (t) => {
  const world = await startReturns(t, {});
  const { json } = cliOf(t, world);
  const mine = await world.delivered();
  const theirs = await world.delivered('bob@there.invalid');
  const id = (await world.db('deliveries').where({ email_id: theirs.emailId }).first('id')).id;
  const forged = `b-${id.replaceAll('-', '')}-${'0'.repeat(16)}@postern.invalid`;
  await t.throwsAsync(world.comesBack(forged, goldenMail('qmail-remote')), { message: /550 5\.1\.1/ });
  // The return path of the other is in the text; the delivery is the one that it came to.
  await world.comesBack(mine.path, goldenMail('report-claims-another', theirs.path));
  await world.comesBack('complaints@postern.invalid', goldenMail('arf-forged-token', forged));
  await world.comesBack('postmaster@postern.invalid', goldenMail('postfix-unknown-user', theirs.path));
  t.is((await world.get(mine.emailId)).status, 'delivered');
  t.is((await world.get(theirs.emailId)).status, 'delivered');
  t.deepEqual(typesOf(await world.get(mine.emailId)).slice(2), ['email.forward_failed']);
  t.deepEqual(typesOf(await world.get(theirs.emailId)).slice(2), []);
  const listed = await json('returned list');
  t.deepEqual(
    listed.map(({ kind, emailId }: { kind: string; emailId: string | null }) => [kind, emailId]),
    [
      ['failed', null],
      ['complaint', null],
      ['failed', mine.emailId],
    ],
  );
});

test('spellings of one address are one recipient; a return path is served before reports', async (t) => {
  const world = await startReturns(t);
  const { emailId, path } = await world.delivered();
  const names = ['postmaster', 'POSTMASTER', 'Postmaster'];
  const spellings = names.flatMap((name) => [`${name}@postern.invalid`, `${name}@postern.invalid.`]);
  const bounce = goldenMail('qmail-remote', path);
  await world.comesBack([...spellings, path, path.toUpperCase()], bounce);
  t.is((await world.get(emailId)).status, 'bounced');
  const kept = await world.db('inbound_mails').orderBy('id').select('recipient');
  t.deepEqual(
    kept.map(({ recipient }) => recipient.toLowerCase()),
    [path, 'postmaster@postern.invalid'],
  );
});
