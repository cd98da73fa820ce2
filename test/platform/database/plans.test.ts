/**
 * The cost of a statement does not grow with what waits and what is past: each that a running server depends on finds
 * its rows by an index, on both databases, which are asked how they go about what the real functions really run.
 */
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { deadDomain, fill } from '#lab/database/backlog-rows.ts';
import { kinds } from '#lab/database/databases.ts';
import { splitTables } from '#lab/database/partitioned-rows.ts';
import { plansOf } from '#lab/database/plans.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { attemptOf, sendOf } from '#lab/sends.ts';
import { acceptAll } from '#mail/accept/rows/acceptance.ts';
import { forgetAnswers } from '#mail/accept/rows/idempotency.ts';
import { transition } from '#mail/deliver/transition.ts';
import { applyQueueAction, type QueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { forgetLearned } from '#mail/queue/rows/learned-rows.ts';
import {
  claimBacklogs,
  claimExpired,
  findDue,
  freeOrphans,
  listBacklogs,
  readMessages,
  releaseLeases,
  renewLeases,
  takeBack,
} from '#mail/queue/rows/lease-statements.ts';
import { recordAll } from '#mail/queue/rows/outcomes.ts';
import { oldestDue, queueDepth, webhookBacklog } from '#mail/queue/rows/queue-counts.ts';
import { listQueue, summarizeQueue } from '#mail/queue/rows/queue-view.ts';
import { startScheduled } from '#mail/queue/rows/scheduled-mail.ts';
import { findEmail, listAttempts } from '#mail/record/rows/emails.ts';
import { recordVisits } from '#mail/record/rows/engagement.ts';
import { forgetEmails } from '#mail/record/rows/forget-emails.ts';
import { findEvents, readEvents, settledPosition } from '#mail/record/rows/read-events.ts';
import { forgetAttempts, forgetEvents } from '#mail/record/rows/retention.ts';
import { searchEmails } from '#mail/record/rows/search-emails.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';
import { readStatus } from '#operate/status/read-status.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { stages } from '#platform/database/tables/unfinished-deliveries.ts';
import type { Delivery } from '#platform/values/glossary.ts';

/** Those that grow: with each mail, or with each recipient that is suppressed. */
const long = [
  ...['emails', 'messages', 'deliveries', 'attempts', 'events', 'credit_entries', 'idempotency'],
  'suppressions',
];

const now = Date.now();
const lease = { node: 'node', now, leaseMs: 60_000 };
const minute = 60_000;

/** A database with a past, and a queue. */
async function filled(t: ExecutionContext, kind: (typeof kinds)[number]) {
  const world = await startWorld(t, { database: kind });
  const sent = async (to: string, status: string) => {
    const { body } = await world.send({ to, subject: to, idempotencyKey: to });
    await world.when(body.emailId, (email) => email.status === status);
    return body.emailId as string;
  };
  const templates = {
    delivered: await sent('ann@there.invalid', 'delivered'),
    deferred: await sent('tempfail@there.invalid', 'deferred'),
  };
  await world.stop();
  if (isPostgres(world.db)) await splitTables(world.db);
  await fillOthers(world.db);
  await fill(world.db, templates, { waiting: 600, past: 20_000, destinations: 20, organizations: 5 });
  await world.db.raw('update emails set is_test = created_at % 2 = 0');
  if (isPostgres(world.db)) await world.db.raw('vacuum analyze emails');
  return { ...world, templates };
}

/** What the filling with mail leaves out. */
async function fillOthers(db: Db): Promise<void> {
  const { id: orgId } = await db('organizations').first('id');
  // So many that PostgreSQL seeks a hundred keys, which it takes a JSON value for, rather than reads all.
  const count = 50_000;
  const [numbers, id] = isPostgres(db)
    ? [`generate_series(0::bigint, ${count - 1}) as numbers(n)`, 'gen_random_uuid()']
    : [
        `(with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n < ${count - 1}) select n from numbers)`,
        'lower(hex(randomblob(16)))',
      ];
  const address = `'n' || n || '@there.invalid'`;
  await db.raw(`insert into idempotency (org_id, kind, key, request_hash, response, email_id, created_at)
    select '${orgId}', 'key', 'n' || n, '', '{}', ${id}, ${now} - n * ${minute} from ${numbers}`);
  await db.raw(`insert into suppressions (id, org_id, address, address_key, reason, created_at)
    select ${id}, '${orgId}', ${address}, ${address}, 'imported', ${now} from ${numbers}`);
  await db.raw(`insert into learned (kind, name, value, expires_at)
    select 'a', 'n' || n, '{}', ${now} + n from ${numbers}`);
}

type Filled = Awaited<ReturnType<typeof filled>>;

const laneOf = async (db: Db) => (await listBacklogs(db, { after: null, now, limit: 50 })).due[0]!;

async function claimed(db: Db): Promise<Delivery[]> {
  return claimBacklogs(db, [{ ...(await laneOf(db)), limit: 3 }], lease);
}

async function newSend(db: Db): Promise<Send> {
  const { id: orgId } = await db('organizations').where({ name: 'Tenant' }).first();
  return {
    ...sendOf(orgId),
    keyId: uuid(),
    idempotency: { kind: 'key', key: 'new', requestHash: 'hash' },
    acceptedAt: now,
    expiresAt: now + 60 * minute,
    lease: { node: 'node', until: now + minute },
  };
}

const refused = attemptOf(
  {
    outcome: 'bounced',
    category: 'no_mailbox',
    fault: 'recipient',
    bounce: 'hard',
    diagnostic: '550 no',
  },
  now,
);

/** Some mail that waits is scheduled, and now due. */
async function schedule(db: Db): Promise<void> {
  const ids = await db('deliveries').whereRaw(stages.waiting).orderBy('due_at').limit(5).pluck('id');
  await db('deliveries').whereIn('id', ids).update({ status: 'scheduled', due_at: now });
}

/** Something is wrong at a destination, for which a part of the queue waits. */
async function trouble(db: Db): Promise<void> {
  const problem = {
    cause: 'unreachable',
    category: 'network',
    since: now,
    at: now,
    count: 1,
    reply: '',
    host: null,
  };
  const state = { connections: 0, limit: 1, waiting: 0, circuit: null, busySince: null, problem };
  const row = { name: deadDomain(7), node: 'a', state: JSON.stringify(state), at: now };
  await db('destinations').insert(row).onConflict(['name', 'node']).merge();
}

const orgOf = async (db: Db) => (await db('organizations').where({ name: 'Tenant' }).first()).id;

const newEvents = async (db: Db) =>
  readEvents(db, { orgId: null, after: (await settledPosition(db)) - 100, limit: 50 });

const request = (action: QueueAction) => ({ action, reason: 'a reason', now });

const due = 'deliveries_due_at_index';
const lanes = 'deliveries_domain_org_id_due_at_index';
const expiry = 'deliveries_expires_at_index';
const leases = 'deliveries_lease_owner_index';
const held = 'deliveries_held_index';
const scheduled = 'deliveries_scheduled_index';
const bySelf = /^(deliveries_pkey|sqlite_autoindex_deliveries_1)$/;

/** What a server does again and again, with indexes that it cannot do without. */
const hot: Record<string, [run: (filled: Filled) => Promise<unknown>, ...indexes: (string | RegExp)[]]> = {
  'a look at what has fallen due': [({ db }) => findDue(db, { after: now - 3000, now, max: 1000 }), due],
  'a walk along the lanes': [({ db }) => listBacklogs(db, { after: null, now, limit: 200 }), lanes],
  'the oldest due': [({ db }) => oldestDue(db, now), due],
  'the queue counted': [({ db }) => queueDepth(db, now), due, leases, held, scheduled],
  'a look at what is scheduled': [({ db }) => startScheduled(db, now), scheduled],
  'scheduled mail started': [
    async ({ db }) => {
      await schedule(db);
      await startScheduled(db, now);
    },
    scheduled,
    bySelf,
  ],
  'scheduled mail listed': [({ db }) => listQueue(db, { status: 'scheduled', limit: 50 }, now), scheduled],
  'a claim': [({ db }) => claimed(db), lanes, bySelf],
  'a claim of what is too old': [({ db }) => claimExpired(db, 200, lease), expiry],
  'leases given back': [async ({ db }) => releaseLeases(db, 'node', await claimed(db)), bySelf],
  'leases renewed': [
    async ({ db }) =>
      renewLeases(
        db,
        'node',
        (await claimed(db)).map(({ id }) => id),
        now + minute,
      ),
    bySelf,
  ],
  'orphaned leases freed': [({ db }) => freeOrphans(db, 'node', now, now + minute), leases],
  'own leases taken back': [({ db }) => takeBack(db, 'node', now, 1000, 'own'), leases],
  'expired leases taken back': [({ db }) => takeBack(db, 'node', now, 1000, 'expired'), leases],
  'a send accepted': [
    async ({ db }) => acceptAll(db, [await newSend(db)], { keepMs: minute, lowShare: 0.1 }),
  ],
  'outcomes recorded': [
    async ({ db }) => {
      const moves = (await claimed(db)).map((delivery) => transition(delivery, refused, null));
      return recordAll(db, 'node', moves, ['no_mailbox']);
    },
    bySelf,
  ],
  'a message read': [
    async ({ db }) => readMessages(db, [(await claimed(db))[0]!.messageId], (sealed) => sealed),
    /messages_pkey|autoindex_messages/,
  ],
  'an email looked at': [
    ({ db, templates }) => findEmail(db, templates.delivered, null),
    'deliveries_email_id_position_index',
    'events_email_id_position_index',
  ],
  'its attempts': [
    ({ db, templates }) => listAttempts(db, templates.delivered),
    'attempts_delivery_id_number_index',
  ],
  'a visit recorded': [
    async ({ db }) => {
      const [one] = await claimed(db);
      const visit = { event: 'open', kind: 'human', at: now, userAgent: '', ip: '', url: null };
      return recordVisits(db, [{ ...visit, deliveryId: one!.id } as never]);
    },
    bySelf,
  ],
  'answers forgotten': [
    ({ db }) => forgetAnswers(db, now, 2900 * minute),
    'idempotency_kind_created_at_index',
  ],
  'what was learned forgotten': [({ db }) => forgetLearned(db, now), 'learned_expires_at_index'],
  "an organization's events read": [
    async ({ db }) => readEvents(db, { orgId: await orgOf(db), after: 100, limit: 50 }),
    'events_org_id_position_index',
  ],
  'its events of a type read': [
    async ({ db }) =>
      readEvents(db, { orgId: await orgOf(db), after: 100, limit: 50, types: ['email.bounced'] }),
    'events_org_id_position_index',
  ],
  'all new events read': [({ db }) => newEvents(db)],
  'events found for webhooks': [
    async ({ db }) => {
      const { events } = await newEvents(db);
      return findEvents(
        db,
        events.map(({ id }) => id),
        events.map(({ position }) => position),
      );
    },
  ],
  'figures summed up': [({ db }) => sumUp(db)],
  'emails searched': [
    async ({ db }) => searchEmails(db, { orgId: await orgOf(db), tags: {}, limit: 20 }),
    'emails_org_id_id_index',
  ],
  'the inbox read': [
    async ({ db }) => searchEmails(db, { orgId: await orgOf(db), onlyTest: true, tags: {}, limit: 20 }),
    'emails_test_index',
  ],
};

/** What an operator does: it may look at all that waits, and at nothing that is past. */
const actions: Record<string, [run: (filled: Filled) => Promise<unknown>, ...indexes: string[]]> = {
  'queue list': [({ db }) => listQueue(db, { limit: 100 }, now), expiry, leases, held],
  'queue list --domain': [({ db }) => listQueue(db, { domain: 'd7.dead.invalid', limit: 10 }, now)],
  // It sorts the few domains and webhooks that fail.
  status: [
    async ({ db, config }) => {
      await trouble(db);
      await readStatus({ db, config, now, served: false });
      return readStatus({ db, config, now, served: true });
    },
    due,
    lanes,
  ],
  'queue summary': [({ db }) => summarizeQueue(db, { now, bounds: [minute] })],
  'queue hold': [({ db }) => applyQueueAction(db, { domain: 'd3.dead.invalid' }, request('hold')), held],
  'queue retry': [({ db }) => applyQueueAction(db, { domain: 'd4.dead.invalid' }, request('retry'))],
  'queue release': [
    ({ db }) => applyQueueAction(db, { domain: 'd3.dead.invalid' }, request('release')),
    held,
  ],
  // An email has few, which are sorted.
  "an email's events read": [
    ({ db, templates: { delivered } }) =>
      readEvents(db, { orgId: null, after: 0, limit: 50, emailId: delivered }),
    'events_email_id_position_index',
  ],
  'queue cancel --to': [
    ({ db }) => applyQueueAction(db, { to: 'nobody@d3.dead.invalid' }, request('cancel')),
  ],
};

for (const kind of kinds) {
  test(`${kind}: every statement that is repeated finds its rows by an index`, async (t) => {
    const world = await filled(t, kind);
    if (kind === 'postgres') await checkPartitions(t, world);
    const faultsOf = async (name: string, [run, ...indexes]: (typeof hot)[string]) => {
      const plans = await plansOf(world.db, () => run(world));
      t.true(plans.length > 0, name);
      const used = plans.flatMap((plan) => plan.indexes);
      const missing = indexes.filter(
        (one) => !used.some((index) => (typeof one === 'string' ? one === index : one.test(index))),
      );
      const isOrder = name in actions;
      const bad = plans.filter(
        ({ scans, sorts }) => (sorts && !isOrder) || scans.some((table) => long.includes(table)),
      );
      return [...missing.map((one) => `not by ${one}`), ...bad.map(({ sql }) => sql)].map(
        (what) => `${name}: ${what}`,
      );
    };
    const faults: string[] = [];
    for (const [name, one] of Object.entries({ ...hot, ...actions }))
      faults.push(...(await faultsOf(name, one)));
    t.deepEqual(faults, []);

    await world.db.schema.alterTable('deliveries', (table) => table.dropIndex([], due));
    const name = 'a look at what has fallen due';
    t.not((await faultsOf(name, hot[name]!)).length, 0, 'an index that goes missing is missed');
  });
}

/** What is new, and what an id or a position names, is found without a look at other partitions. */
async function checkPartitions(t: ExecutionContext, { db, templates }: Filled): Promise<void> {
  const placesOf = async (run: () => Promise<unknown>) =>
    (await plansOf(db, run)).map(({ sql, partitions }) => ({ sql, partitions }));
  const max = async (run: () => Promise<unknown>, table: string) =>
    Math.max(
      ...(await placesOf(run)).map(
        ({ partitions }) => new Set(partitions.filter((name) => name.startsWith(`${table}_`))).size,
      ),
    );
  t.true((await db('pg_inherits').whereRaw("inhparent = 'events'::regclass")).length > 5);
  t.is(await max(() => findEmail(db, templates.delivered, null), 'emails'), 1);
  t.true((await max(() => newEvents(db), 'events')) <= 2);
  // The oldest are at the beginning of the first that has any: the others are in the plan, and not opened.
  const others = [
    () => forgetEvents(db, 0),
    () => forgetAttempts(db, 0),
    () => webhookBacklog(db),
    () => forgetEmails(db, () => now, 25 * 24 * 60 * minute)(),
  ];
  for (const run of others) {
    const bad = (await plansOf(db, run)).filter(
      ({ scans, sorts }) => sorts || scans.some((table) => long.includes(table)),
    );
    t.deepEqual(bad, []);
  }
  const { rows } = await db.raw(
    'explain (analyze, format json) select position from events order by position limit 5',
  );
  const [append] = rows[0]['QUERY PLAN'][0].Plan.Plans;
  t.is(append['Node Type'], 'Append');
  t.is(append.Plans.filter((one: { 'Actual Loops': number }) => one['Actual Loops'] > 0).length, 1);
}
