/**
 * The cursor of the event feed skips and repeats nothing, on both databases: several writers commit real transactions
 * that overlap, stay open and roll back, on their own connections, while several readers read page by page.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { type DatabaseKind, journeyKinds } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { until } from '#lab/until.ts';
import { type EventPage, readEvents, settledPosition } from '#mail/record/rows/read-events.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';

const now = Date.UTC(2026, 0, 1);
const types = ['email.queued', 'email.delivered', 'email.bounced'];

async function newFeed(t: ExecutionContext, kind: DatabaseKind) {
  const { db, open } = await openMigrated(t, kind);
  const orgs: string[] = [];
  for (const name of ['One', 'Two', 'Three'])
    orgs.push(await db.transaction((trx) => insertOrganization(trx, name, now)));
  return { db, open, orgs: orgs as [string, string, string] };
}

const eventOf = (orgId: string, type: string) => ({
  id: newId(),
  org_id: orgId,
  email_id: null,
  type,
  recipient: null,
  at: now,
  data: '{}',
});

/** SQLite retries for its lock in no order, so that one of eight writers can be unlucky for long. */
async function untilNotBusy(transact: () => Promise<void>): Promise<void> {
  try {
    await transact();
  } catch (error) {
    if (!(error as Error).message.includes('SQLITE_BUSY')) throw error;
    await untilNotBusy(transact);
  }
}

/** Reads all events after a position. */
async function readAll(db: Db, orgId: string | null, after = 0, limit = 7): Promise<EventPage['events']> {
  const page = await readEvents(db, { orgId, after, limit });
  return page.isMore ? [...page.events, ...(await readAll(db, orgId, page.position, limit))] : page.events;
}

for (const kind of journeyKinds) {
  test(`${kind}: with 8 writers and 4 readers, every reader gets every event once, in the same order`, async (t) => {
    const { db, open, orgs } = await newFeed(t, kind);
    const [noisy, quiet] = orgs;
    const written = new Map<string, string>();
    const rounds = kind === 'sqlite' ? 25 : 60;
    let writing = 8;

    async function write(writer: number) {
      const own = await open();
      for (let round = 0; round < rounds; round++) {
        const rolledBack = round % 7 === writer % 7;
        const rows = [noisy, quiet, noisy].map((orgId, at) => eventOf(orgId, types[(round + at) % 3]!));
        const transact = async () => {
          await own.transaction(async (trx) => {
            await insertRows(trx, 'events', rows.slice(0, 1));
            // Others are given positions, and commit, between ours and our commit.
            if ((round + writer) % 3 === 0) await sleep(1 + ((round * 7 + writer * 3) % 9));
            await insertRows(trx, 'events', rows.slice(1));
            if (rolledBack) throw new Error('rolled back');
          });
          for (const row of rows) written.set(row.id, row.org_id);
        };
        await untilNotBusy(transact).catch((error: Error) => t.is(error.message, 'rolled back'));
      }
      writing -= 1;
    }

    async function read(orgId: string | null, limit: number) {
      const own = await open();
      const ids: string[] = [];
      let after = 0;
      let wasWriting = 0;
      for (let isDone = false; !isDone; ) {
        isDone = writing === 0;
        const page = await readEvents(own, { orgId, after, limit });
        ids.push(...page.events.map(({ id }) => id));
        if (writing > 0 && page.events.length > 0) wasWriting += 1;
        after = page.position;
        isDone &&= !page.isMore;
      }
      t.true(wasWriting > 3, 'it read while others wrote');
      return ids;
    }

    const readers = [read(null, 5), read(noisy, 3), read(quiet, 100), read(noisy, 1)];
    await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
    const [all, ofNoisy, ofQuiet, slowly] = (await Promise.all(readers)) as [
      string[],
      string[],
      string[],
      string[],
    ];
    const inOrder = (await readAll(db, null)).map(({ id }) => id);
    t.deepEqual([...written.keys()].sort(), [...inOrder].sort(), 'all that was committed, and nothing else');
    t.deepEqual(all, inOrder, 'without a gap or a repeat');
    t.deepEqual(
      ofNoisy,
      inOrder.filter((id) => written.get(id) === noisy),
    );
    t.deepEqual(
      ofQuiet,
      inOrder.filter((id) => written.get(id) === quiet),
    );
    t.deepEqual(slowly, ofNoisy);
    t.deepEqual(await readAll(db, orgs[2]), []);
  });

  test(`${kind}: a search for some types reads limited stretches and returns a position to continue from`, async (t) => {
    const { db, orgs } = await newFeed(t, kind);
    const [orgId, other] = orgs;
    const many = Array.from({ length: 4100 }, (_, at) => eventOf(orgId, at === 4050 ? 'rare' : 'usual'));
    await db.transaction(async (trx) => {
      for (let at = 0; at < many.length; at += 100) await insertRows(trx, 'events', many.slice(at, at + 100));
      await insertRows(trx, 'events', [eventOf(other, 'rare')]);
    });
    const query = { orgId, limit: 10, types: ['rare', 'rarer'] };
    const one = await readEvents(db, { ...query, after: 0 });
    t.like(one, { events: [], isMore: true });
    const two = await readEvents(db, { ...query, after: one.position });
    t.like(two, { events: [], isMore: true });
    const three = await readEvents(db, { ...query, after: two.position });
    t.is(three.events.length, 1);
    t.false(three.isMore);
    t.deepEqual(await readEvents(db, { ...query, after: three.position }), {
      events: [],
      position: three.position,
      isMore: false,
    });
  });

  test(`${kind}: a position is never used twice, even if the newest events are deleted`, async (t) => {
    const { db, orgs } = await newFeed(t, kind);
    t.is((await readEvents(db, { orgId: orgs[0], after: 0, limit: 1 })).position, 0);
    await insertRows(db as never, 'events', [eventOf(orgs[0], 'one'), eventOf(orgs[0], 'two')]);
    const { position } = await readEvents(db, { orgId: orgs[0], after: 0, limit: 10 });
    t.is(position, await settledPosition(db));
    await db('events').delete();
    await insertRows(db as never, 'events', [eventOf(orgs[0], 'three')]);
    const { events } = await readEvents(db, { orgId: orgs[0], after: position, limit: 10 });
    t.deepEqual(
      events.map(({ type }) => type),
      ['three'],
    );
  });
}

// SQLite has one writer at a time.

test('postgres: a reader waits for an open transaction only if it would skip its events', async (t) => {
  const { db, open, orgs } = await newFeed(t, 'postgres');
  const [orgId] = orgs;
  const slow = await (await open()).transaction();
  const seen = async () => (await readAll(db, orgId)).map(({ type }) => type);
  await insertRows(db as never, 'events', [eventOf(orgId, 'first')]);
  await insertRows(slow, 'events', [eventOf(orgId, 'slow')]);
  await insertRows(db as never, 'events', [eventOf(orgId, 'fast')]);
  t.deepEqual(await seen(), ['first'], 'the slow one will come before the fast one');
  await slow.commit();
  t.deepEqual(await seen(), ['first', 'slow', 'fast']);

  const failing = await (await open()).transaction();
  await insertRows(failing, 'events', [eventOf(orgId, 'never')]);
  await insertRows(db as never, 'events', [eventOf(orgId, 'last')]);
  t.is((await seen()).at(-1), 'fast');
  await failing.rollback();
  t.deepEqual(await seen(), ['first', 'slow', 'fast', 'last']);
});

test('postgres: a node that dies while it writes does not block the feed', async (t) => {
  const { db, open, orgs } = await newFeed(t, 'postgres');
  const other = await open();
  const dying = await other.transaction();
  await insertRows(dying, 'events', [eventOf(orgs[0], 'never')]);
  const { rows } = await dying.raw('select pg_backend_pid() as pid');
  await insertRows(db as never, 'events', [eventOf(orgs[0], 'told')]);
  t.deepEqual(await readAll(db, orgs[0]), []);
  await db.raw('select pg_terminate_backend(?)', [rows[0].pid]);
  await until(async () => (await readAll(db, orgs[0])).length === 1);
  await t.throwsAsync(dying.commit().then(() => dying.executionPromise));
});
