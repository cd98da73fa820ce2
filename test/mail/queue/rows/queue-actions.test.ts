/**
 * The operator's actions as changes of rows, on both databases; test/mail/queue/operator.test.ts has them beside a running
 * server.
 */
import test from 'ava';
import { addSuppressions, removeSuppression } from '#accounts/rows/suppressions.ts';
import { kinds } from '#lab/database/databases.ts';
import { minute, now, openQueue, type Row } from '#lab/database/queue-rows.ts';
import {
  applyQueueAction,
  changeable,
  type QueueAction,
  type Selection,
} from '#mail/queue/rows/apply-queue-action.ts';
import { listOrders, suspensionOrder } from '#mail/queue/rows/destination-rules.ts';
import { claimBacklogs } from '#mail/queue/rows/lease-statements.ts';
import { listQueue, summarizeQueue } from '#mail/queue/rows/queue-view.ts';
import { resume, suspend } from '#mail/queue/rows/suspensions.ts';
import { readDestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { findEmail } from '#mail/record/rows/emails.ts';

const states: Record<string, Row> = {
  queued: { status: 'queued', attempts: 0, due_at: now + minute },
  deferred: { status: 'deferred', attempts: 2, due_at: now + 10 * minute },
  'overdue retry': { status: 'deferred', attempts: 2, due_at: now - 3 * minute },
  overdue: { status: 'queued', attempts: 0, due_at: now - 2 * minute },
  sending: { status: 'sending', attempts: 0, due_at: now + 5 * minute, lease_owner: 'a node' },
  held: { status: 'held', attempts: 0, due_at: null, updated_at: now - 20 * minute },
  'held late': { status: 'held', attempts: 3, due_at: null, updated_at: now - 20 * minute },
  delivered: { status: 'delivered', attempts: 1, due_at: null },
  bounced: { status: 'bounced', attempts: 1, due_at: null },
  canceled: { status: 'canceled', attempts: 0, due_at: null },
  suppressed: { status: 'suppressed', attempts: 0, due_at: null },
};

/** What becomes of each; where nothing is said, nothing. */
const moves: Record<QueueAction, Record<string, [status: string, dueAt: number | null]>> = {
  retry: {
    queued: ['queued', now],
    deferred: ['deferred', now],
    'overdue retry': ['deferred', now - 3 * minute],
    overdue: ['queued', now - 2 * minute],
  },
  hold: Object.fromEntries(
    ['queued', 'deferred', 'overdue retry', 'overdue'].map((state) => [state, ['held', null]]),
  ),
  release: { held: ['queued', now], 'held late': ['deferred', now] },
  cancel: Object.fromEntries(
    ['queued', 'deferred', 'overdue retry', 'overdue', 'held', 'held late'].map((state) => [
      state,
      ['canceled', null],
    ]),
  ),
};

const told: Record<QueueAction, string[]> = {
  retry: [],
  hold: ['email.held'],
  release: [],
  cancel: ['email.canceled'],
};

for (const kind of kinds) {
  const request = (action: QueueAction) => ({ action, reason: 'a reason', now });

  for (const name of Object.keys(moves) as QueueAction[]) {
    test(`${kind}: ${name} moves ${Object.keys(moves[name]).join(', ')}, and leaves all else as it is`, async (t) => {
      const { db, add, read } = await openQueue(t, kind);
      const { emailId, ids } = await add(...Object.values(states));
      const before = await Promise.all(ids.map(read));
      const done = await applyQueueAction(db, { emailId }, request(name));
      const moved = Object.keys(moves[name]).length;
      t.is(done.changed, moved);
      t.is(done.sending, 1);
      const left = Object.values(done.left).reduce((sum, count) => sum + count, 0);
      t.is(moved + done.sending + left, ids.length, 'all are accounted for');
      for (const [at, state] of Object.keys(states).entries()) {
        const row = await read(ids[at]!);
        const move = moves[name][state];
        if (!move) {
          t.deepEqual(row, before[at], state);
          continue;
        }
        t.deepEqual([row.status, row.due_at], move, state);
        t.deepEqual([row.lease_owner, row.updated_at], [null, now], state);
        const grown = name === 'release' ? 20 * minute : 0;
        t.is(row.expires_at, before[at].expires_at + grown, `${state}: held mail does not grow old`);
      }
      const events = await db('events').where({ email_id: emailId });
      t.deepEqual([...new Set(events.map(({ type }) => type))], told[name]);
      t.is(events.length, told[name].length * moved);
      for (const { data, recipient, at } of events) {
        t.deepEqual([JSON.parse(data), recipient, at], [{ reason: 'a reason' }, 'ann@there.invalid', now]);
      }
      t.is((await db('emails').where({ id: emailId }).first()).updated_at, now);
    });
  }

  test(`${kind}: a filter selects what it says, all filters together`, async (t) => {
    const { db, add, newOrg, read } = await openQueue(t, kind);
    const otherOrg = await newOrg();
    const mails = {
      ann: await add({ recipient: 'Ann@There.invalid' }),
      bob: await add({ recipient: 'bob@there.invalid', status: 'queued', attempts: 0 }),
      cy: await add({ recipient: 'cy@shared.invalid' }),
      dee: await add({ recipient: 'dee@alone.invalid' }),
      eve: await add({ recipient: 'eve@there.invalid', org_id: otherOrg }),
    };
    await db('routes').insert([
      { domain: 'there.invalid', destination: 'mx1.invalid,mx2.invalid' },
      { domain: 'shared.invalid', destination: 'mx1.invalid,mx2.invalid' },
    ]);
    const selected = async (selection: Selection) => {
      await applyQueueAction(db, selection, request('hold'));
      const rows = await Promise.all(Object.values(mails).map(({ ids }) => read(ids[0]!)));
      const names = Object.keys(mails).filter((_, at) => rows[at].status === 'held');
      await applyQueueAction(db, { status: 'held' }, request('release'));
      await db('deliveries').where({ id: mails.bob.ids[0]! }).update({ status: 'queued' });
      return names.join(' ');
    };
    t.is(await selected({ domain: 'there.invalid' }), 'ann bob eve');
    t.is(await selected({ destination: 'mx1.invalid,mx2.invalid' }), 'ann bob cy eve');
    t.is(await selected({ destination: 'alone.invalid' }), 'dee', 'a domain without a route is its own');
    t.is(await selected({ orgId: otherOrg }), 'eve');
    t.is(await selected({ status: 'queued' }), 'bob');
    t.is(await selected({ to: 'ANN@there.INVALID' }), 'ann', 'however it is written');
    t.is(await selected({ to: 'nobody@there.invalid' }), '');
    t.is(await selected({ emailId: mails.cy.emailId }), 'cy');
    t.is(await selected({ domain: 'there.invalid', orgId: otherOrg, status: 'deferred' }), 'eve');
    t.is(await selected({ emailId: mails.cy.emailId, domain: 'there.invalid' }), '');
  });

  test(`${kind}: a long queue is moved in pages, each row once`, async (t) => {
    const { db, add } = await openQueue(t, kind);
    for (let n = 0; n < 25; n++) await add(...Array<Row>(100).fill({}));
    await add({ recipient: 'bob@else.invalid' });
    const progress: number[] = [];
    const onProgress = (moved: number) => progress.push(moved);
    const done = await applyQueueAction(db, { domain: 'there.invalid' }, { ...request('hold'), onProgress });
    t.deepEqual(done, { changed: 2500, sending: 0, left: {} });
    t.deepEqual(progress, [1000, 2000]);
    const again = await applyQueueAction(db, { domain: 'there.invalid' }, request('hold'));
    t.deepEqual(again, { changed: 0, sending: 0, left: { held: 2500 } });
    t.is((await db('events').where({ type: 'email.held' })).length, 2500);
  });

  test(`${kind}: beside servers that claim, each row is claimed or moved, never both`, async (t) => {
    const { db, add, orgId } = await openQueue(t, kind);
    await add(...Array<Row>(400).fill({ due_at: now - minute }));
    const lane = { domain: 'there.invalid', orgId, limit: 40 };
    const claim = (node: string) => claimBacklogs(db, [lane], { node, now, leaseMs: minute });
    const [claims, canceled, held] = await Promise.all([
      Promise.all(Array.from({ length: 5 }, (_, n) => claim(`node ${n}`))),
      applyQueueAction(db, { domain: 'there.invalid' }, request('cancel')),
      applyQueueAction(db, { domain: 'there.invalid' }, request('hold')),
    ]);
    const rows = await db('deliveries');
    const leased = rows.filter(({ lease_owner }) => lease_owner !== null);
    t.is(leased.length, claims.flat().length);
    t.true(leased.every(({ status, due_at }) => status === 'sending' && due_at === now + minute));
    const count = (status: string) => rows.filter((row) => row.status === status).length;
    const canceledEvents = await db('events').where({ type: 'email.canceled' });
    t.is(canceledEvents.length, canceled.changed);
    t.is(count('canceled'), canceled.changed, 'canceled is final');
    t.true(count('held') <= held.changed, 'what was held first may have been canceled then');
    t.is(leased.length + count('canceled') + count('held') + count('deferred'), 400);
  });

  test(`${kind}: a suspension is replaced, lapses by itself, and is resumed`, async (t) => {
    const { db } = await openQueue(t, kind);
    const suspension = { destination: 'there.invalid', reason: 'one', createdAt: now, until: now + minute };
    await suspend(db, suspension);
    const other = { destination: 'else.invalid', reason: 'two', createdAt: now, until: now + 9 * minute };
    await suspend(db, other);
    t.deepEqual(await listOrders(db, now), [other, suspension].map(suspensionOrder));
    const replaced = { ...suspension, reason: 'three', createdAt: now + 1, until: now + 2 * minute };
    await suspend(db, replaced);
    t.deepEqual(await listOrders(db, now + minute), [other, replaced].map(suspensionOrder));
    t.deepEqual(await listOrders(db, now + 2 * minute), [suspensionOrder(other)], 'its time is up');
    t.is(await resume(db, 'there.invalid', now + 2 * minute), null);
    t.deepEqual(await resume(db, 'else.invalid', now + 2 * minute), other);
    t.deepEqual(await db('suspensions'), [], 'what has lapsed is deleted in passing');
  });

  test(`${kind}: the summary counts by domain, status and age, and knows the latest reply`, async (t) => {
    const { db, add } = await openQueue(t, kind);
    const reply = (text: string) => JSON.stringify({ code: 451, enhanced: null, text });
    const { emailId } = await add(
      { created_at: now - 6 * minute, updated_at: now - 2, last_reply: reply('later') },
      { created_at: now - 5 * minute, updated_at: now - 1, last_reply: reply('latest') },
      { created_at: now, due_at: now - minute, status: 'queued' },
      { created_at: now - 99 * minute, status: 'sending', due_at: now, lease_owner: 'a node' },
      { created_at: now - 7 * minute, status: 'held', due_at: null },
      { status: 'delivered', due_at: null },
    );
    await add({ recipient: 'bob@else.invalid', created_at: now - 200 * minute });
    await db('routes').insert({ domain: 'there.invalid', destination: 'mx1.invalid' });
    const bounds = [5 * minute, 10 * minute];
    const [first, second, ...others] = await summarizeQueue(db, { now, bounds });
    t.deepEqual(others, []);
    t.like(first, { domain: 'else.invalid', destination: 'else.invalid', ages: [0, 0, 1], lastReply: null });
    t.deepEqual(second, {
      domain: 'there.invalid',
      destination: 'mx1.invalid',
      counts: { queued: 1, sending: 1, deferred: 2, held: 1 },
      parked: 1,
      ages: [2, 2, 1],
      oldestAt: now - 99 * minute,
      nextAttemptAt: now - minute,
      lastReply: { code: 451, enhanced: null, text: 'latest' },
      lastReplyAt: now - 1,
      withoutSource: [],
      paused: 0,
      greylistedSince: null,
    });
    const shown = await findEmail(db, emailId, null);
    t.is(shown!.deliveries[2]!.nextAttemptAt, now - minute, 'due since then');
    const listed = await listQueue(db, { destination: 'mx1.invalid', limit: 10 }, now);
    t.deepEqual(
      listed.map(({ status, nextAttemptAt, dueSince }) => [status, nextAttemptAt, dueSince]),
      [
        ['deferred', now + 10 * minute, null],
        ['deferred', now + 10 * minute, null],
        ['queued', now - minute, now - minute],
        ['sending', null, null],
        ['held', null, null],
      ],
    );
  });

  test(`${kind}: what servers say of a destination is put together, and forgotten when they are gone`, async (t) => {
    const { db } = await openQueue(t, kind);
    const problem = {
      cause: 'throttled',
      category: 'rate_limit',
      reply: '421 busy',
      host: null,
      bouncedAt: null,
    };
    const idle = {
      connections: 1,
      limit: 2,
      waiting: 3,
      circuit: null,
      busySince: null,
      lastReply: null,
      lastReplyAt: null,
      problem: { ...problem, since: now - 3, at: now, count: 1 },
      accepted: { since: now - minute + 1, count: 4, ms: 40 },
    };
    const circuit = { since: now, failures: 5, nextProbeAt: now + minute, reason: 'no answer' };
    const busy = {
      ...idle,
      circuit,
      busySince: now - 5,
      busyReply: '421 busy',
      busyAt: now - 5,
      lastReply: '250 ok',
      lastReplyAt: now - 5,
      problem: { ...problem, since: now - 9, at: now - 1, count: 2 },
      accepted: { since: now - minute, count: 3, ms: 30 },
    };
    const said = { name: 'mx1.invalid', node: 'a', state: JSON.stringify(idle), at: now };
    const gone = [
      { ...said, node: 'c', at: now - minute - 1 },
      { ...said, name: 'mx2.invalid', at: now - minute - 1 },
    ];
    await db('destinations').insert([
      said,
      { ...said, node: 'b', state: JSON.stringify(busy) },
      // The one server of a SQLite database does not repeat what it says.
      ...(kind === 'postgres' ? gone : []),
    ]);
    const { states } = await readDestinationStatuses(db, now);
    const together = {
      problem: { ...problem, since: now - 9, at: now, count: 3 },
      accepted: { since: now - minute, count: 7, ms: 70 },
    };
    t.deepEqual(
      [...states],
      [['mx1.invalid', { ...busy, ...together, connections: 2, limit: 4, waiting: 6 }]],
    );
    if (kind === 'sqlite') t.is((await readDestinationStatuses(db, now, false)).states.size, 0);
  });

  test(`${kind}: what changes the suppression list makes an event`, async (t) => {
    const { db, orgId } = await openQueue(t, kind);
    const entry = (name: string) => {
      const address = `${name}@there.invalid`;
      return { orgId, address, addressKey: address.toLowerCase(), reason: 'imported' };
    };
    await addSuppressions(db, [entry('Bob')], now);
    const list = [entry('bob'), entry('Cy'), entry('cy'), entry('ann')];
    t.is(await addSuppressions(db, list, now), 2);
    t.true(await removeSuppression(db, orgId, 'cy@there.invalid', now));
    t.false(await removeSuppression(db, orgId, 'cy@there.invalid', now));
    const events = await db('events').orderBy('id');
    t.deepEqual(
      events.map(({ type, data }) => [type, JSON.parse(data)]),
      [
        ...['Bob', 'ann', 'Cy'].map((name) => [
          'suppression.added',
          { address: `${name}@there.invalid`, reason: 'imported', emailId: null },
        ]),
        ['suppression.removed', { address: 'Cy@there.invalid', reason: 'imported' }],
      ],
    );
    t.true(events.every(({ email_id, org_id }) => email_id === null && org_id === orgId));
  });
}

test('no action applies to mail that is being sent or is final', (t) => {
  for (const from of Object.values(changeable))
    for (const state of from) t.true(['queued', 'deferred', 'held', 'scheduled'].includes(state));
});
