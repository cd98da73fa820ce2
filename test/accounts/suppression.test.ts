/** After a hard bounce of the recipient's own fault the address is not written to again; after any other it is. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';

const isSettled = ({ status }: { status: string }) => !['queued', 'sending', 'processing'].includes(status);

test('after a hard bounce the next send to that address is refused as suppressed', async (t) => {
  const world = await startWorld(t);
  const { json } = cliOf(t, world);
  const bounced = (await world.send({ to: 'Unknown@there.invalid' })).body.emailId;
  await world.when(bounced, ({ status }) => status === 'bounced');

  const again = await world.send({ to: 'unknown@There.invalid', subject: 'Again' });
  t.is(again.status, 422);
  t.is(again.body.error, 'ALL_RECIPIENTS_SUPPRESSED');
  const partly = await world.send({ to: ['unknown@there.invalid', 'ann@there.invalid'], subject: 'Both' });
  t.deepEqual(partly.body.suppressed, ['unknown@there.invalid']);
  t.deepEqual(partly.body.accepted, ['ann@there.invalid']);
  t.like(await json('suppression list --org Tenant'), [
    { address: 'Unknown@there.invalid', reason: 'hard bounce: unknown_user' },
  ]);
  const events = await world.db('events').where({ type: 'suppression.added' });
  t.deepEqual(
    events.map(({ data, email_id }) => [JSON.parse(data), email_id]),
    [[{ address: 'Unknown@there.invalid', reason: 'hard bounce: unknown_user', emailId: bounced }, null]],
  );

  await json('suppression remove unknown@there.invalid --org Tenant');
  t.is((await world.send({ to: 'unknown@there.invalid', subject: 'Taken off' })).status, 200);
});

test('a domain that takes no mail suppresses too; a full mailbox and a block of ours do not', async (t) => {
  const rcpt = ({ address = '' }) =>
    address.startsWith('blocked@') ? '550 5.7.1 your address 192.0.2.1 is on our blocklist' : undefined;
  const world = await startWorld(t, {
    exchangers: [{ script: { rcpt } }],
    zone: { 'null.invalid': { MX: ['0 .'] } },
  });
  const to = ['ann@null.invalid', 'full@there.invalid', 'blocked@there.invalid', 'bob@nowhere.invalid'];
  const { emailId } = (await world.send({ to })).body;
  const { recipients } = await world.when(emailId, isSettled);
  t.deepEqual(
    recipients.map(({ status }: { status: string }) => status),
    ['bounced', 'bounced', 'bounced', 'bounced'],
  );
  const { suppressed, accepted } = (await world.send({ to, subject: 'Again' })).body;
  t.deepEqual(suppressed, ['ann@null.invalid', 'bob@nowhere.invalid']);
  t.deepEqual(accepted, ['full@there.invalid', 'blocked@there.invalid']);
});

test('a bounce does not suppress the address for another organization', async (t) => {
  const world = await startWorld(t);
  const { emailId } = (await world.send({ to: 'unknown@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'bounced');
  const { json } = cliOf(t, world);
  await json('org create --name Other');
  t.deepEqual(await json('suppression list --org Other'), []);
  t.is((await json('suppression list --org Tenant')).length, 1);
});

test('POSTERN_SUPPRESS_AFTER names the categories that suppress, or is off', async (t) => {
  const world = await startWorld(t, {
    settings: { POSTERN_SUPPRESS_AFTER: 'dns' },
  });
  const to = ['unknown@there.invalid', 'bob@nowhere.invalid'];
  const { emailId } = (await world.send({ to })).body;
  await world.when(emailId, isSettled);
  t.deepEqual((await world.send({ to, subject: 'Again' })).body.suppressed, ['bob@nowhere.invalid']);

  const lenient = await startWorld(t, { settings: { POSTERN_SUPPRESS_AFTER: 'off' } });
  const first = (await lenient.send({ to })).body;
  await lenient.when(first.emailId, isSettled);
  t.deepEqual((await lenient.send({ to, subject: 'Again' })).body.accepted, to);
});
