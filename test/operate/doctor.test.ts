/** What `postern doctor` finds where all is well, where there is no network, and where something hangs. */
import ava, { type ExecutionContext } from 'ava';
import { oneKind } from '#lab/database/databases.ts';
import { startDns } from '#lab/dns/dns.ts';
import { startDoctorWorld } from '#lab/scenes/doctor-world.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

test(`all is well, on ${oneKind}`, async (t) => {
  const { healthy } = await startDoctorWorld(t, { database: oneKind });
  const [database, ...rest] = healthy;
  const others = rest.filter(({ verdict }) => verdict !== 'ok');
  t.deepEqual(
    others.map(({ check, found }) => [check, found]),
    [
      ...(oneKind === 'postgres'
        ? [['backup', 'PostgreSQL is backed up by its own tools, such as pg_dump']]
        : []),
      ['port 25 by IPv6', 'no probed host has an IPv6 address'],
    ],
  );
  t.is(database!.check, 'database');
  t.regex(database!.found, /^(SQLite|PostgreSQL) [\d.]+.*, [\d.]+ [KM]iB, its schema up to date/);
  // The tests' PostgreSQL runs without what keeps it safe (scripts/test.ts).
  if (oneKind === 'sqlite') t.is(database!.verdict, 'ok');
  else {
    t.is(database!.verdict, 'warning');
    t.regex(
      database!.found,
      /; fsync and full_page_writes off, so a crash of the database machine can lose mail/,
    );
    t.regex(database!.advice!, /^set fsync = on and full_page_writes = on in postgresql.conf/);
  }
  t.true(healthy.length >= 25);
  const checks = healthy.map(({ check, subject }) => `${check} of ${subject}`);
  t.is(new Set(checks).size, checks.length);
});

test(`a schema that is behind, or ahead, on ${oneKind}`, async (t) => {
  const { db, changed } = await startDoctorWorld(t, { database: oneKind });
  const [last] = await db('knex_migrations').orderBy('id', 'desc').limit(1);
  await db('knex_migrations').where({ id: last.id }).delete();
  const [behind, ...more] = await changed();
  t.deepEqual(more, []);
  t.like(behind, { check: 'database', subject: 'this server', verdict: 'warning' });
  t.regex(behind!.found, new RegExp(`its schema lacks ${last.name}$`));
  await db('knex_migrations').insert([last, { ...last, id: last.id + 1, name: '999-future' }]);
  const [ahead, ...others] = await changed();
  t.deepEqual(others, []);
  t.like(ahead, { check: 'database', verdict: 'failure' });
  t.regex(ahead!.found, /its schema \(999-future\) was made by a newer version of Postern/);
});

// No network.

test('without DNS the doctor does not hang, and names no fault that it cannot know', async (t) => {
  const world = await startDoctorWorld(t);
  const timeouts = { ...world.surroundings.timeouts!, dns: 400 };
  for (const [dnsServers, said] of [
    [['127.0.0.1:9'], 'nothing listens there'],
    [[(await silentDns(t)).address], 'it does not answer'],
  ] as const) {
    const surroundings = { timeouts, timeServers: ['time.invalid:123'] };
    const findings = await world.examineNow({ config: { dnsServers: [...dnsServers] }, surroundings });
    const failures = findings.filter(({ verdict }) => verdict === 'failure' || verdict === 'warning');
    t.deepEqual(
      failures.map(({ check, found }) => [check, found]),
      [['servers', `no answer from DNS server ${dnsServers[0]}: ${said}`]],
    );
    const ptr = findings.find(({ check }) => check === 'DKIM')!;
    t.like(ptr, { verdict: 'skipped', found: `not known: no answer from DNS server ${dnsServers[0]}` });
  }
});

async function silentDns(t: ExecutionContext) {
  const dns = await startDns({ 'big.invalid': 'TIMEOUT', 'signed.invalid': 'TIMEOUT' });
  t.teardown(() => dns.close());
  return dns;
}

test('a run of the doctor ends in time, whatever hangs', async (t) => {
  const world = await startDoctorWorld(t);
  const timeouts = { ...world.surroundings.timeouts!, all: 1_500 };
  const findings = await world.examineNow({
    surroundings: { timeouts, freeBytes: () => new Promise(() => {}) },
  });
  // On a slow machine, others may have taken too long as well.
  t.like(
    findings.find(({ check }) => check === 'disk space'),
    { verdict: 'skipped', found: 'took longer than 1.5 s' },
  );
});

test('the doctor tells how far it has come', async (t) => {
  const world = await startDoctorWorld(t);
  const told: { done: number; known: number; waitingFor: string[] }[] = [];
  const findings = await world.examineNow({ onProgress: (progress) => told.push(progress) });
  t.deepEqual(told.at(-1), { done: findings.length, known: findings.length, waitingFor: [] });
  t.true(told[0]!.waitingFor.length > 5);
});
