/** The queue's statements on both databases: what is seen, leased and given back, by whom, in which order. */
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import {
  claimBacklogs,
  claimExpired,
  findDue,
  listBacklogs,
  releaseLeases,
} from '#mail/queue/rows/lease-statements.ts';
import type { Db } from '#platform/database/engine/open.ts';

const now = Date.UTC(2026, 0, 1);
const terms = { node: 'node', now, leaseMs: 1000 };

async function newQueue(t: ExecutionContext, kind: DatabaseKind) {
  const { db } = await openMigrated(t, kind);
  const orgs = [await db.transaction((trx) => insertOrganization(trx, 'One', now))];
  orgs.push(await db.transaction((trx) => insertOrganization(trx, 'Two', now)));
  return { db, orgs: orgs as [string, string] };
}

interface Row {
  org: string;
  domain?: string;
  due?: number | null;
  expires?: number;
  attempts?: number;
  status?: string;
}

async function put(db: Db, name: string, row: Row): Promise<void> {
  const { org, domain = 'a.invalid', due = now, expires = now + 1e6, attempts = 0, status = 'queued' } = row;
  const emailId = uuid();
  const times = { created_at: now, updated_at: now };
  await db('emails').insert({
    id: emailId,
    org_id: org,
    message_id: name,
    sender: 'app@sender.invalid',
    subject: name,
    recipients: '[]',
    tags: '{}',
    tracking: '{}',
    credits: 1,
    ...times,
  });
  await db('deliveries').insert({
    id: uuid(),
    email_id: emailId,
    org_id: org,
    position: 0,
    recipient: name,
    domain,
    status,
    attempts,
    due_at: due,
    expires_at: expires,
    ...times,
  });
}

const states = async (db: Db) =>
  Object.fromEntries((await db('deliveries')).map((row) => [row.recipient, row.status]));

const namesOf = (list: { recipient: string }[]) => list.map(({ recipient }) => recipient).sort();

for (const kind of kinds) {
  test(`${kind}: what has fallen due is seen once, by its lanes, with its last retry`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    const retry = { attempts: 1, status: 'deferred' };
    await put(db, 'before', { org: orgs[0], due: now - 10 });
    await put(db, 'new', { org: orgs[0], due: now - 9 });
    await put(db, 'retry', { org: orgs[0], due: now - 8, ...retry });
    await put(db, 'last retry', { org: orgs[0], due: now - 7, ...retry });
    await put(db, 'other', { org: orgs[1], due: now });
    await put(db, 'later', { org: orgs[0], domain: 'b.invalid', due: now + 1 });
    await put(db, 'held', { org: orgs[0], domain: 'b.invalid', status: 'held', due: null });
    const found = await findDue(db, { after: now - 10, now, max: 4 });
    t.deepEqual(
      new Set(found),
      new Set([
        { domain: 'a.invalid', orgId: orgs[0], retryAt: now - 7 },
        { domain: 'a.invalid', orgId: orgs[1], retryAt: null },
      ]),
    );
    t.is(await findDue(db, { after: now - 10, now, max: 3 }), null, 'too much for a look');
    t.deepEqual(await findDue(db, { after: now, now, max: 3 }), []);
  });

  test(`${kind}: of a lane the longest due is leased first, and nothing before it is due`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'second', { org: orgs[0], due: now - 1 });
    await put(db, 'first', { org: orgs[0], due: now - 2 });
    await put(db, 'not yet', { org: orgs[0], due: now + 1 });
    await put(db, 'held', { org: orgs[0], status: 'held', due: null });
    const lane = { domain: 'a.invalid', orgId: orgs[0] };
    const [first] = await claimBacklogs(db, [{ ...lane, limit: 1 }], terms);
    t.like(first, { recipient: 'first', dueAt: now - 2 });
    t.deepEqual(namesOf(await claimBacklogs(db, [{ ...lane, limit: 5 }], terms)), ['second']);
    t.deepEqual(await states(db), { first: 'sending', second: 'sending', 'not yet': 'queued', held: 'held' });
    const rows = await db('deliveries').where({ status: 'sending' });
    t.true(rows.every((row) => row.lease_owner === 'node' && row.due_at === now + 1000));
  });

  test(`${kind}: many lanes are served in one claim, each organization by itself`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    for (const n of [1, 2, 3]) await put(db, `big${n}`, { org: orgs[0], attempts: 1, status: 'deferred' });
    await put(db, 'small', { org: orgs[1] });
    await put(db, 'elsewhere', { org: orgs[1], domain: 'b.invalid' });
    const lanes = orgs.map((orgId) => ({ domain: 'a.invalid', orgId, limit: 1 }));
    const more = Array.from({ length: 600 }, (_, n) => ({
      domain: `n${n}.invalid`,
      orgId: orgs[0],
      limit: 1,
    }));
    const leased = await claimBacklogs(db, [...more, ...lanes, { ...lanes[1]!, domain: 'b.invalid' }], terms);
    t.deepEqual(leased.map(({ recipient }) => recipient.replace(/\d/, '')).sort(), [
      'big',
      'elsewhere',
      'small',
    ]);
  });

  test(`${kind}: a walk along the lanes finds those in which something is due, page by page`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    for (const domain of ['c.invalid', 'a.invalid', 'b.invalid']) {
      for (const n of [1, 2, 3]) await put(db, `${n}@${domain}`, { org: orgs[0], domain, due: now + n - 2 });
      await put(db, `late@${domain}`, { org: orgs[1], domain, due: now + 1 });
    }
    const found: string[] = [];
    let pages = 0;
    let after = null;
    do {
      const page: Awaited<ReturnType<typeof listBacklogs>> = await listBacklogs(db, { after, now, limit: 2 });
      for (const { domain, orgId } of page.due) found.push(`${domain} ${orgs.indexOf(orgId)}`);
      after = page.last;
      pages += 1;
    } while (after);
    t.deepEqual(found, ['a.invalid 0', 'b.invalid 0', 'c.invalid 0']);
    t.is(pages, 4, 'six lanes by two, and the end');
  });

  test(`${kind}: what waits comes up when it has reached its maximum age`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'old', { org: orgs[0], expires: now + 500 });
    await put(db, 'held', { org: orgs[0], expires: now + 500, status: 'held', due: null });
    await put(db, 'young', { org: orgs[0] });
    t.deepEqual(await claimExpired(db, 10, { ...terms, now: now + 499 }), []);
    t.deepEqual(namesOf(await claimExpired(db, 10, { ...terms, now: now + 500 })), ['old']);
    t.deepEqual(await states(db), { old: 'sending', held: 'held', young: 'queued' });
  });

  test(`${kind}: leases are given back as they were; another node's are left alone`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'fresh', { org: orgs[0], due: now - 3 });
    await put(db, 'tried', { org: orgs[0], attempts: 2, status: 'deferred' });
    const lane = { domain: 'a.invalid', orgId: orgs[0], limit: 10 };
    const before = await db('deliveries').orderBy('id');
    const taken = await claimBacklogs(db, [lane], terms);
    await releaseLeases(db, 'another', taken);
    t.deepEqual(await states(db), { fresh: 'sending', tried: 'sending' });
    await releaseLeases(db, 'node', taken);
    const given = { updated_at: now, due_at: undefined };
    const plain = (rows: object[]) => rows.map((row) => ({ ...row, ...given }));
    const after = await db('deliveries').orderBy('id');
    t.deepEqual(plain(after), plain(before));
    t.deepEqual(
      after.map((row) => row.due_at),
      before.map((row) => row.due_at),
      'to their places in the lane',
    );
    t.is((await claimBacklogs(db, [lane], terms)).length, 2);
  });
}
