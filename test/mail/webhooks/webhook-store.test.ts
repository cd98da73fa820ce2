/** The outbox's statements on both databases: what is made of events, who is due, in which order, what is kept. */
import test, { type ExecutionContext } from 'ava';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { type DatabaseKind, oneKind } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { settledPosition } from '#mail/record/rows/read-events.ts';
import { verdictOf, type WebhookVerdict } from '#mail/webhooks/classify-response.ts';
import { forgetWebhookAttempts, forgetWebhookMessages } from '#mail/webhooks/rows/webhook-attempts.ts';
import { fanOut, passOver } from '#mail/webhooks/rows/webhook-feed.ts';
import {
  claimMessages,
  listDueWebhooks,
  releaseMessages,
  type WebhookMessage,
} from '#mail/webhooks/rows/webhook-outbox.ts';
import { recordTries } from '#mail/webhooks/rows/webhook-outcomes.ts';
import { type ReplaySelection, replay } from '#mail/webhooks/rows/webhook-replay-rows.ts';
import { findWebhook, insertWebhook } from '#mail/webhooks/rows/webhooks.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';

const start = Date.UTC(2026, 0, 1);

async function newStore(t: ExecutionContext, kind: DatabaseKind) {
  const { db, open } = await openMigrated(t, kind);
  const orgId = await db.transaction((trx) => insertOrganization(trx, 'Acme', start));
  let now = start;
  const add = (types: string[] = [], owner = orgId) =>
    insertWebhook(
      db,
      {
        orgId: owner,
        url: 'https://app.invalid/',
        types,
        format: 'standard',
        secret: 'sealed',
        publicKey: null,
      },
      now,
    );
  const claimAs = (node: string, limit: number, ids: string[]) =>
    claimMessages(db, { node, now, leaseMs: 60_000, picks: ids.map((webhookId) => ({ webhookId, limit })) });
  return {
    db,
    open,
    orgId,
    add,
    now: () => now,
    pass(by: number) {
      now += by;
    },
    email: () => insertEmail(db, orgId),
    async happen(types: string[], emailId: string | null = null, owner = orgId) {
      const rows = types.map((type) => ({
        id: newId(),
        org_id: owner,
        email_id: emailId,
        type,
        recipient: null,
        at: now,
        data: '{}',
      }));
      await db.transaction((trx) => insertRows(trx, 'events', rows));
      return rows.map(({ id }) => id);
    },
    tell: () => fanOut(db, { now, limit: 500 }),
    claim: async (limit = 16, node = 'one') => {
      const due = await listDueWebhooks(db, now);
      return claimAs(
        node,
        limit,
        due.map(({ id }) => id),
      );
    },
    record: (messages: WebhookMessage[], verdict: WebhookVerdict | number, node = 'one') =>
      recordTries(
        db,
        node,
        messages.map((message) => {
          const status = typeof verdict === 'number' ? verdict : 200;
          const answer = { status, retryAfter: null, text: 'so' };
          const attempt = {
            startedAt: now,
            endedAt: now,
            duration: 5,
            url: message.url,
            answer,
            error: null,
          };
          const made = typeof verdict === 'number' ? verdictOf({ answer }, message.attempts, now) : verdict;
          return { message, attempt, verdict: made };
        }),
      ),
    replay: async (id: string, selection: ReplaySelection) =>
      replay(db, (await findWebhook(db, id, null))!, selection, now),
    states: async () => {
      const rows = await db('webhook_messages').orderBy(['webhook_id', 'position']);
      return rows.map(({ status }) => status);
    },
  };
}

async function insertEmail(db: Db, orgId: string): Promise<string> {
  const id = newId();
  await db('emails').insert({
    id,
    org_id: orgId,
    message_id: 'a@b',
    sender: 'app@sender.invalid',
    subject: 'Hello',
    recipients: '[]',
    tags: '{}',
    tracking: '{}',
    credits: 1,
    created_at: start,
    updated_at: start,
  });
  return id;
}

const typesOf = (messages: WebhookMessage[]) => messages.map(({ event }) => event!.type).sort();

test('an endpoint gets events of its types and organization, from when it was made', async (t) => {
  const { db, orgId, add, happen, tell, claim } = await newStore(t, oneKind);
  const other = await db.transaction((trx) => insertOrganization(trx, 'Other', start));
  await happen(['email.queued']);
  await add();
  await add(['email.bounced']);
  await add([], other);
  await happen(['email.bounced', 'email.delivered', 'webhook.test']);
  await happen(['credits.low'], null, other);
  t.is((await tell()).made, 4);
  t.is((await tell()).made, 0, 'once');
  t.deepEqual(typesOf(await claim()), ['credits.low', 'email.bounced', 'email.bounced', 'email.delivered']);
  t.is((await db('webhook_messages').where({ lease_owner: 'one' })).length, 4);
  t.truthy(orgId);
});

test('nodes that read events at once make one message of each', async (t) => {
  const { open, add, happen, now, db } = await newStore(t, oneKind);
  await add();
  const nodes = await Promise.all([open(), open(), open()]);
  const reading = async (node: Db) => {
    for (let n = 0; n < 12; n++) await fanOut(node, { now: now(), limit: 7 });
  };
  const writing = async () => {
    for (let n = 0; n < 10; n++) await happen(['email.queued', 'email.delivered', 'email.opened']);
  };
  await Promise.all([...nodes.map(reading), writing()]);
  for (let n = 0; n < 6; n++) await fanOut(db, { now: now(), limit: 7 });
  const told = await db('webhook_messages').pluck('event_id');
  t.deepEqual(told.sort(), (await db('events').pluck('id')).sort());
});

test('of an email one message at a time is due, whatever becomes of it; the others wait for none', async (t) => {
  const { add, happen, tell, claim, record, email, states, pass } = await newStore(t, oneKind);
  await add();
  const one = await email();
  await happen(['email.queued', 'email.delivered'], one);
  await happen(['credits.low']);
  await tell();
  const first = await claim();
  t.deepEqual(typesOf(first), ['credits.low', 'email.queued']);
  await happen(['email.opened'], one);
  await tell();
  t.deepEqual(await claim(), [], 'all the rest waits');
  await record(first, 500);
  t.deepEqual(await claim(), []);
  pass(5000);
  const again = await claim();
  t.deepEqual(typesOf(again), ['credits.low', 'email.queued']);
  t.deepEqual(
    again.map(({ attempts }) => attempts),
    [1, 1],
  );
  await record(again, 200);
  const second = await claim();
  t.deepEqual(typesOf(second), ['email.delivered']);
  await record(second, { kind: 'failed', pausedUntil: null });
  const third = await claim();
  t.deepEqual(typesOf(third), ['email.opened']);
  await record(third, 200);
  t.deepEqual(await states(), ['delivered', 'failed', 'delivered', 'delivered']);
});

test('one node has a lease, until it is given back or runs out', async (t) => {
  const { db, add, happen, tell, claim, record, now, pass } = await newStore(t, oneKind);
  await add();
  await happen(['credits.low', 'credits.exhausted']);
  await tell();
  const [mine] = await claim(1);
  const [theirs] = await claim(16, 'two');
  t.not(mine!.id, theirs!.id);
  t.deepEqual(await claim(16, 'three'), []);
  await releaseMessages(db, { node: 'one', now: now() });
  t.deepEqual(
    (await claim(16, 'two')).map(({ id }) => id),
    [mine!.id],
  );
  await record([mine!], 200);
  t.is(
    (await db('webhook_messages').where({ status: 'delivered' })).length,
    0,
    'it was not its own any more',
  );
  pass(60_000);
  t.is((await claim(16, 'three')).length, 2);
});

test('what is due for long goes first, and an endpoint that is paused or disabled is left alone', async (t) => {
  const { db, add, happen, tell, claim, record, now, pass } = await newStore(t, oneKind);
  const id = await add();
  const [first] = await happen(['credits.low']);
  await tell();
  pass(1000);
  await happen(['credits.exhausted']);
  await tell();
  const [taken] = await claim(1);
  t.is(taken!.eventId, first!);
  await record([taken!], { kind: 'again', dueAt: now() + 10, pausedUntil: now() + 5000 });
  pass(4999);
  t.deepEqual(await claim(), []);
  pass(1);
  const both = await claim();
  t.is(both.length, 2);
  const [disabled] = await record([both[0]!], { kind: 'gone' });
  t.is(disabled!.webhook.id, id);
  t.deepEqual(await record([both[1]!], { kind: 'gone' }), [null], 'said once');
  t.deepEqual(await claim(), []);
  t.deepEqual(await db('events').where({ type: 'webhook.disabled' }).pluck('org_id'), [
    disabled!.webhook.orgId,
  ]);
  await happen(['credits.low']);
  t.is((await tell()).made, 0);
});

test('one message is replayed, all failed ones, those of a time; in order, also those that were never posted', async (t) => {
  const {
    db,
    add,
    happen,
    tell,
    claim,
    record,
    replay: again,
    email,
    pass,
    now,
  } = await newStore(t, oneKind);
  const one = await email();
  const [before] = await happen(['email.queued'], one);
  pass(1000);
  const id = await add(['email.queued', 'email.delivered', 'email.bounced']);
  const since = now();
  const [delivered, bounced] = await happen(['email.delivered', 'email.bounced'], one);
  await happen(['email.opened'], one);
  await tell();
  await record(await claim(), 200);
  await record(await claim(), { kind: 'failed', pausedUntil: null });
  t.deepEqual(await claim(), []);

  t.is(await again(id, { failed: true }), 1);
  const failed = await claim();
  t.deepEqual(
    failed.map(({ eventId, attempts }) => [eventId, attempts]),
    [[bounced, 0]],
  );
  await record(failed, 200);

  t.is(await again(id, { eventId: delivered! }), 1);
  const single = await claim();
  t.deepEqual(
    single.map(({ eventId }) => eventId),
    [delivered],
  );
  await record(single, 200);

  t.is(await again(id, { since, until: now() }), 2);
  t.is(await again(id, { since: start, until: now() }), 3);
  const order: string[] = [];
  for (let n = 0; n < 3; n++) {
    const claimed = await claim();
    order.push(...claimed.map(({ eventId }) => eventId));
    await record(claimed, 200);
  }
  t.deepEqual(order, [before, delivered, bounced]);
  t.is(await again(id, { eventId: newId() }), 0, 'there is none');
  const other = await db.transaction((trx) => insertOrganization(trx, 'Other', start));
  const [theirs] = await happen(['email.queued'], null, other);
  t.is(await again(id, { eventId: theirs! }), 0, "another organization's");
});

test('a replay of what the feed has not come to yet does not tell it twice, and stops nobody', async (t) => {
  const { add, happen, tell, replay: again, now, claim } = await newStore(t, oneKind);
  const id = await add();
  await happen(['credits.low', 'credits.exhausted']);
  t.is(await again(id, { since: start, until: now() }), 2);
  t.is((await tell()).made, 0);
  t.is((await claim()).length, 2);
});

test('while there is no endpoint, events are passed over', async (t) => {
  const { db, add, happen, tell, claim } = await newStore(t, oneKind);
  await happen(['credits.low']);
  await passOver(db, await settledPosition(db));
  await add();
  await happen(['credits.exhausted']);
  await tell();
  t.deepEqual(typesOf(await claim()), ['credits.exhausted']);
});

test('attempts are kept for their time, then messages; not those that are to be told', async (t) => {
  const { db, add, happen, tell, claim, record, replay: again, pass, now } = await newStore(t, oneKind);
  const id = await add();
  const [old] = await happen(['credits.low', 'credits.exhausted']);
  await tell();
  await record(await claim(), 200);
  pass(1000);
  t.is(await forgetWebhookMessages(db, now()), 0, 'its attempts are still there');
  t.is(await forgetWebhookAttempts(db, now()), 2);
  t.is(await forgetWebhookAttempts(db, now()), 0);
  pass(1000);
  await again(id, { eventId: old! });
  t.is(await forgetWebhookMessages(db, now() - 500), 1);
  t.deepEqual(
    (await claim()).map(({ eventId }) => eventId),
    [old],
  );
});

test('an endpoint that is removed takes its messages along, also those under way', async (t) => {
  const { db, add, happen, tell, claim, record } = await newStore(t, oneKind);
  const id = await add();
  await happen(['credits.low']);
  await tell();
  const claimed = await claim();
  await db('webhooks').where({ id }).delete();
  t.deepEqual(await record(claimed, 200), [null]);
  t.deepEqual(await db('webhook_messages'), []);
  t.deepEqual(await db('webhook_attempts'), []);
});
