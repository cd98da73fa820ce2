/** The queue's statements on both databases: what is leased, parked and given back, by whom, in which order. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { migrate } from '../src/db/migrate.ts';
import { type Db, openDatabase } from '../src/db/open.ts';
import { insertOrganization } from '../src/db/organizations.ts';
import { claimDue, claimLanes, giveBack, listLanes } from '../src/db/queue.ts';
import { createDatabase, type DatabaseKind, kinds } from './helpers/databases.ts';

const now = Date.UTC(2026, 0, 1);
const terms = { node: 'node', now, leaseMs: 1000 };
const take = () => 'take' as const;
const park = () => 'park' as const;

async function newQueue(t: ExecutionContext, kind: DatabaseKind) {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-'));
  t.teardown(() => rm(dataDir, { recursive: true, force: true }));
  const database = await createDatabase(kind);
  t.teardown(() => database.drop());
  const db = await openDatabase({ dataDir, databaseUrl: database.url });
  t.teardown(() => db.destroy());
  await migrate(db);
  const orgs = [await db.transaction((trx) => insertOrganization(trx, 'One', now))];
  orgs.push(await db.transaction((trx) => insertOrganization(trx, 'Two', now)));
  return { db, orgs: orgs as [string, string] };
}

interface Row {
  org: string;
  domain?: string;
  due?: number;
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
  Object.fromEntries(
    (await db('deliveries')).map((row) => [
      row.recipient,
      `${row.status}${row.parked_at === null ? '' : ' parked'}`,
    ]),
  );

for (const kind of kinds) {
  test(`${kind}: what is due is leased, the longest due first`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'later', { org: orgs[0], due: now - 1 });
    await put(db, 'first', { org: orgs[0], due: now - 2 });
    await put(db, 'not yet', { org: orgs[0], due: now + 1 });
    await put(db, 'held', { org: orgs[0], status: 'held' });
    const one = await claimDue(db, { ...terms, limit: 1, place: take });
    t.deepEqual([one.taken.map(({ recipient }) => recipient), one.isMore], [['first'], true]);
    const two = await claimDue(db, { ...terms, limit: 5, place: take });
    t.deepEqual([two.taken.map(({ recipient }) => recipient), two.isMore], [['later'], false]);
    t.deepEqual(await states(db), { first: 'sending', later: 'sending', 'not yet': 'queued', held: 'held' });
  });

  test(`${kind}: what has no room is parked, and found by its lane, each organization by itself`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    for (const n of [1, 2, 3]) await put(db, `big${n}`, { org: orgs[0], attempts: 1, status: 'deferred' });
    await put(db, 'small', { org: orgs[1] });
    await put(db, 'elsewhere', { org: orgs[1], domain: 'b.invalid' });
    const claim = await claimDue(db, { ...terms, limit: 10, place: park });
    t.is(claim.taken.length, 0);
    t.is(claim.parked.length, 5);
    t.deepEqual((await listLanes(db)).map(({ domain, orgId }) => `${domain} ${orgs.indexOf(orgId)}`).sort(), [
      'a.invalid 0',
      'a.invalid 1',
      'b.invalid 1',
    ]);
    t.deepEqual(
      (await claimDue(db, { ...terms, limit: 10, place: take })).taken,
      [],
      'parked mail is not due',
    );
    const picks = orgs.map((orgId) => ({ domain: 'a.invalid', orgId, limit: 1 }));
    const leased = await claimLanes(db, picks, terms);
    t.deepEqual(leased.map(({ recipient }) => recipient.replace(/\d/, '')).sort(), ['big', 'small']);
    t.is((await listLanes(db)).length, 2);
    t.is((await claimLanes(db, picks, terms)).length, 1, 'the small one’s lane is empty');
  });

  test(`${kind}: parked mail comes up again when it has reached its maximum age`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'old', { org: orgs[0], expires: now + 500 });
    await claimDue(db, { ...terms, limit: 10, place: park });
    t.is((await claimDue(db, { ...terms, now: now + 499, limit: 10, place: take })).taken.length, 0);
    const { taken } = await claimDue(db, { ...terms, now: now + 500, limit: 10, place: take });
    t.is(taken[0]?.recipient, 'old');
    t.deepEqual(await states(db), { old: 'sending' });
    t.deepEqual(await listLanes(db), []);
  });

  test(`${kind}: leases are given back as they were; another node's are left alone`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'fresh', { org: orgs[0] });
    await put(db, 'tried', { org: orgs[0], attempts: 2, status: 'deferred' });
    const { taken } = await claimDue(db, { ...terms, limit: 10, place: take });
    await giveBack(db, taken, 'parked', { node: 'another', now });
    t.deepEqual(await states(db), { fresh: 'sending', tried: 'sending' });
    await giveBack(db, taken, 'parked', terms);
    t.deepEqual(await states(db), { fresh: 'queued parked', tried: 'deferred parked' });
    const again = await claimLanes(db, [{ domain: 'a.invalid', orgId: orgs[0], limit: 5 }], terms);
    await giveBack(db, again, 'due', terms);
    t.deepEqual(await states(db), { fresh: 'queued', tried: 'deferred' });
    t.is((await claimDue(db, { ...terms, limit: 10, place: take })).taken.length, 2);
  });

  test(`${kind}: finding the lanes takes a seek for each, not a look at what is parked there`, async (t) => {
    const { db, orgs } = await newQueue(t, kind);
    await put(db, 'one', { org: orgs[0] });
    await claimDue(db, { ...terms, limit: 10, place: park });
    const plan =
      kind === 'sqlite'
        ? JSON.stringify(
            await db.raw(
              `explain query plan select id from deliveries where parked_at is not null
               and (domain, org_id) > ('a', 'b') order by domain, org_id limit 1`,
            ),
          )
        : null;
    if (plan)
      t.regex(plan, /USING INDEX deliveries_domain_org_id_parked_at_index \(domain>\?|\(domain,org_id\)>/);
    t.is((await listLanes(db)).length, 1);
  });
}
