/** What the operator orders holds at once, beside a running server, and never costs or doubles a mail. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { aSecondLater } from '#lab/scenes/nodes.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { applyQueueAction, type QueueAction } from '#mail/queue/rows/apply-queue-action.ts';

const later = { rcpt: () => '451 4.3.0 try again later' };
const isDeferred = ({ status }: { status: string }) => status === 'deferred';

test('held mail stays until it is released, with its reason', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: later }] });
  const { json } = cliOf(t, world);
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  await world.when(emailId, isDeferred);
  const held = await json(`queue hold ${emailId} --reason`, 'looks like a mistake');
  t.deepEqual(held, { order: 'hold', reason: 'looks like a mistake', moved: 1, sending: 0, left: {} });
  world.mx[0]!.script = {};
  await world.clock.jump('3d');
  const email = await world.get(emailId);
  t.is(email.status, 'held');
  t.is(email.recipients[0].nextAttemptAt, null);
  t.like(email.events.at(-1), {
    type: 'email.held',
    recipient: 'ann@there.invalid',
    data: { reason: 'looks like a mistake' },
  });
  t.is(world.mx[0]!.messages.length, 0, 'not after its next attempt, nor after its maximum age');
  const [why] = (await json(`email why ${emailId}`)).recipients;
  t.regex(
    why.why,
    /^It has been held by the operator since 2.* \("looks like a mistake"\) until it is released/,
  );

  await json(`queue release ${emailId} --reason`, 'it was none');
  await aSecondLater(world);
  const delivered = await world.passUntil(emailId, ({ status }) => status === 'delivered');
  t.is(delivered.recipients[0].attempts, 2);
  t.is(world.mx[0]!.messages.length, 1);
});

test('canceled mail is never sent, and says why', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: later }] });
  const { json, refusal } = cliOf(t, world);
  const to = ['ann@there.invalid', 'bob@there.invalid'];
  const { emailId } = (await world.send({ to })).body;
  await world.when(emailId, isDeferred);
  t.like(await json(`queue cancel ${emailId} --to ANN@there.invalid --reason typo`), { moved: 1 });
  world.mx[0]!.script = {};
  await world.clock.advance('1m');
  const email = await world.passUntil(emailId, ({ status }) => status === 'partially_delivered');
  t.deepEqual(
    email.recipients.map(({ status }: { status: string }) => status),
    ['canceled', 'delivered'],
  );
  await world.clock.jump('3d');
  t.deepEqual(
    world.mx[0]!.messages.map((message) => message.to),
    [['bob@there.invalid']],
  );
  const [ann] = (await json(`email why ${emailId}`)).recipients;
  t.regex(ann.why, /^It was canceled by the operator at 2.* \("typo"\); nothing more is sent\. Before: mx1/);
  t.regex(
    await refusal(1, `queue cancel ${emailId} --reason again`),
    /^postern: nothing was canceled: ann@there\.invalid is canceled, bob@there\.invalid is delivered; only queued or deferred or held or scheduled mail can be\n/,
  );
});

test('deferred mail is retried within a second of the order', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_RETRY: '4h' } });
  const { json } = cliOf(t, world);
  const { emailId } = (await world.send({ to: 'greylist@there.invalid' })).body;
  await world.when(emailId, isDeferred);
  t.like(await json('queue retry --domain there.invalid --reason', 'it is back'), { moved: 1 });
  await aSecondLater(world);
  const email = await world.passUntil(emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 2);
});

test('the summary and the list show a backlog while it waits', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: later }],
    zone: { 'else.invalid': { MX: ['10 mx1.invalid'] } },
  });
  const { json, cli } = cliOf(t, world);
  for (let n = 0; n < 5; n++) {
    const { emailId } = (await world.send({ to: `n${n}@there.invalid` })).body;
    await world.when(emailId, isDeferred);
  }
  await world.clock.advance('1s');
  const { emailId } = (await world.send({ to: ['ann@else.invalid', 'bob@else.invalid'] })).body;
  await world.when(emailId, isDeferred);
  await json('queue hold --to bob@else.invalid --reason test');

  const byDomain = await json('queue summary --domains');
  t.deepEqual(
    byDomain.map((each: Record<string, unknown>) => [each.domain, each.total, each.deferred, each.held]),
    [
      ['there.invalid', 5, 5, 0],
      ['else.invalid', 2, 1, 1],
    ],
  );
  t.like(byDomain[0], { ages: { '5m': 5, '10m': 0, older: 0 }, lastReply: '451 4.3.0 try again later' });
  const summary: { total: number }[] = await json('queue summary');
  t.is(
    summary.reduce((sum, { total }) => sum + total, 0),
    7,
  );
  const listed = await json('queue list --status held');
  t.like(listed, [{ recipient: 'bob@else.invalid', nextAttemptAt: null, dueSince: null }]);
  const line = (await cli('queue summary --domains')).stdout.toString().split('\n')[0]!.split('\t');
  t.deepEqual(line.slice(0, 3), ['there.invalid', '5', '5']);
  t.is(line.at(-1), '451 4.3.0 try again later');
});

test('whatever is ordered while mail is sent, each mail arrives once or was canceled before', async (t) => {
  const firstFails = {
    rcpt: ({ attempt = 0 }) => (attempt === 1 ? '451 4.3.0 try again later' : undefined),
  };
  const world = await startWorld(t, {
    exchangers: [{ script: firstFails }],
    settings: { POSTERN_MTA_RETRY: '1s' },
  });
  const recipients = Array.from({ length: 60 }, (_, n) => `n${n}@there.invalid`);
  let isSending = true;
  const act = (name: QueueAction, selection = {}) =>
    applyQueueAction(
      world.db,
      { domain: 'there.invalid', ...selection },
      {
        action: name,
        reason: 'a race',
        now: world.clock.now(),
      },
    );
  const hammer = async (name: QueueAction, selections: object[]) => {
    for (let n = 0; isSending; n++) await act(name, selections[n % selections.length]);
  };
  const doomed = recipients.filter((_, n) => n % 3 === 0).map((to) => ({ to }));
  const hammers = [hammer('retry', [{}]), hammer('hold', [{}]), hammer('release', [{}])];
  const cancels = hammer('cancel', doomed);
  for (let n = 0; n < recipients.length; n += 10) await world.send({ to: recipients.slice(n, n + 10) });
  for (let n = 0; n < 20; n++) await world.clock.advance('1s');
  isSending = false;
  await Promise.all([...hammers, cancels]);

  await until(
    async () => {
      await act('release');
      await world.clock.advance('2s');
      const waiting = await world.db('deliveries').whereNotIn('status', ['delivered', 'canceled']);
      return waiting.length === 0;
    },
    { what: 'everything to be delivered or canceled' },
  );
  const rows: { recipient: string; status: string; id: string }[] = await world.db('deliveries');
  t.is(rows.length, recipients.length);
  for (const { recipient, status } of rows) {
    const arrived = world.mx[0]!.messages.filter(({ to }) => to.includes(recipient)).length;
    t.is(arrived, status === 'delivered' ? 1 : 0, `${recipient} ${status}`);
    const events: string[] = await world.db('events').where({ recipient }).orderBy('id').pluck('type');
    t.is(events.filter((type) => type === `email.${status}`).length, 1, `${recipient}: ${events}`);
    t.is(events.at(-1), `email.${status}`, 'nothing comes after what is final');
  }
  t.log(rows.filter(({ status }) => status === 'canceled').length, 'were canceled');
  t.true(rows.some(({ status }) => status === 'delivered'));
  t.deepEqual(await world.db('deliveries').whereNotNull('due_at').orWhereNotNull('lease_owner'), []);
});
