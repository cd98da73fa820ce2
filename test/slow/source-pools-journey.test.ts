/** An organization that is pinned to a pool of source addresses sends from these alone, whichever node took its mail. */
import test, { type ExecutionContext } from 'ava';
import { listOrganizations } from '#accounts/rows/organizations.ts';
import { cliOf } from '#lab/cli.ts';
import { settleAll, sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { createTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { assignPool, readPools } from '#mail/queue/rows/ip-pools.ts';
import { findEmail, listAttempts } from '#mail/record/rows/emails.ts';
import type { Running } from '#server/start.ts';

const here = '127.0.0.21=out1.invalid@transactional 127.0.0.22=out2.invalid@transactional';
const there = [
  { address: '127.0.0.31', name: 'out3.invalid', pool: 'bulk' },
  { address: '127.0.0.32', name: 'out4.invalid', pool: 'bulk' },
];

async function send(url: string, key: string, to: string): Promise<string> {
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ from: 'app@sender.invalid', to, subject: to, text: 'Hello' }),
  });
  const { emailId } = (await response.json()) as { emailId: string };
  return emailId;
}

/** Where each message came from, by the first letters of its recipient. */
function callers({ mx }: World): Record<string, string[]> {
  const seen = new Map<string, Set<string>>();
  for (const { to, session } of mx.flatMap(({ messages }) => messages)) {
    const [who] = to[0]!.split('-');
    seen.set(who!, (seen.get(who!) ?? new Set()).add(session.from));
  }
  return Object.fromEntries([...seen].map(([who, addresses]) => [who, [...addresses].sort()]));
}

const arrived = ({ mx }: World, count: number) =>
  until(() => mx.reduce((sum, { messages }) => sum + messages.length, 0) >= count, {
    what: () => `${count} messages; there are ${mx.map(({ messages }) => messages.length)}`,
  });

/** The world's node has the pool `transactional`; two organizations, "trans" and "bulk", are pinned to a pool each. */
async function pinned(t: ExecutionContext, settings: Record<string, string> = sharedSecret) {
  const world = await startWorld(t, {
    database: 'postgres',
    settings: {
      ...settings,
      POSTERN_MTA_SOURCES: here,
      POSTERN_WARM_SOURCES: '127.0.0.21 127.0.0.22 127.0.0.31 127.0.0.32',
      POSTERN_MTA_PER_DESTINATION: '4',
    },
  });
  const keys = { trans: world.key, bulk: await createTenant(world.db, world.config, world.dns) };
  const [trans, bulk] = (await listOrganizations(world.db)).map(({ id }) => id) as [string, string];
  await assignPool(world.db, trans, 'transactional');
  await assignPool(world.db, bulk, 'bulk');
  await world.clock.advance('1s');
  const startBulk = async (changes = {}) => {
    const node = await startNode(t, world, { mtaSources: there, ...changes });
    await settleAll(world, 2);
    return node;
  };
  return { world, keys, orgs: { trans, bulk }, startBulk };
}

test('mail of two organizations leaves from the pool of each, whichever node takes it', async (t) => {
  const { world, keys, startBulk } = await pinned(t);
  const second = await startBulk();
  const urls = [world.url(), second.url];
  const sent = Array.from({ length: 40 }, (_, n) => {
    const who = n % 2 === 0 ? 'trans' : 'bulk';
    return send(urls[(n >> 1) % 2]!, keys[who], `${who}-${n}@there.invalid`);
  });
  await Promise.all(sent);
  await arrived(world, 40);
  t.deepEqual(callers(world), {
    trans: ['127.0.0.21', '127.0.0.22'],
    bulk: ['127.0.0.31', '127.0.0.32'],
  });
  t.true(world.mx[0]!.maxConnections <= 4, `${world.mx[0]!.maxConnections} connections`);
});

test('mail of a pool whose node is gone waits for it, and for no other', async (t) => {
  const { world, keys, startBulk } = await pinned(t);
  const second: Running = await startBulk();
  await send(second.url, keys.bulk, 'bulk-1@there.invalid');
  await arrived(world, 1);
  await second.stop();
  const waiting = await send(world.url(), keys.bulk, 'bulk-2@there.invalid');
  await send(world.url(), keys.trans, 'trans-1@there.invalid');
  await arrived(world, 2);
  // The host has it before its outcome is recorded.
  await until(async () => (await world.db('deliveries').where({ status: 'delivered' })).length === 2, {
    what: 'both outcomes',
  });
  await world.clock.advance('11s');
  const { rows } = await world.db.raw("select status, attempts from deliveries where status <> 'delivered'");
  t.deepEqual(rows, [{ status: 'queued', attempts: 0 }]);
  t.deepEqual([...(await readPools(world.db, world.clock.now()))], ['transactional']);
  const told = await cliOf(t, world).json('email why', waiting);
  t.is(told.recipients[0].condition.cause, 'no_source');
  t.regex(told.recipients[0].why, /sends from the IP pool bulk, and no running node has an address in it\./);

  await startBulk();
  await arrived(world, 3);
  t.deepEqual(Object.keys(callers(world)).sort(), ['bulk', 'trans']);
  t.deepEqual(callers(world).trans, ['127.0.0.21']);
  t.true(callers(world).bulk!.every((one) => ['127.0.0.31', '127.0.0.32'].includes(one)));
  const { recipients } = await until(async () => {
    const { body } = await world.call('GET', `/api/public/email/${waiting}`, {
      headers: { authorization: `Bearer ${keys.bulk}` },
    });
    return body.status === 'delivered' && body;
  });
  t.is(recipients[0].attempts, 1);
});

test('what a node of another pool had in the air is recorded as interrupted, and left to that pool', async (t) => {
  const { world, keys, startBulk } = await pinned(t);
  await send(world.url(), keys.bulk, 'bulk-1@there.invalid');
  const { db, clock } = world;
  const leaseEnds = clock.now() + 20_000;
  await db('deliveries').update({ status: 'sending', lease_owner: 'gone', due_at: leaseEnds });
  await clock.passUntil(async () => (await db('attempts').select('id')).length > 0, {
    step: '5s',
    what: 'the attempt to be recorded',
  });
  await clock.advance('11s');
  t.like(await db('deliveries').first(), { status: 'deferred', attempts: 1, lease_owner: null });
  t.is(world.mx[0]!.sessions.length, 0);
  await startBulk();
  await arrived(world, 1);
  t.deepEqual(Object.keys(callers(world)), ['bulk']);
});

test('mail at its maximum age is ended by any node where none has its pool, and nothing is sent', async (t) => {
  const { world, keys } = await pinned(t);
  const { db, clock } = world;
  await send(world.url(), keys.bulk, 'bulk-1@there.invalid');
  await db('deliveries').update({ expires_at: clock.now() + 10_000 });
  await until(
    async () => (await clock.advance('1s')) ?? (await db('deliveries').first()).status === 'expired',
  );
  const { id } = await db('emails').first('id');
  t.deepEqual(await listAttempts(db, id), []);
  const { events } = (await findEmail(db, id, null))!;
  t.regex(
    String(events.find(({ type }) => type === 'email.expired')!.data.diagnostic),
    /no running node has a source address in the IP pool of this organization/,
  );
  t.is(world.mx[0]!.sessions.length, 0);
});

test('another pin holds within a second, for queued mail and for connections that wait', async (t) => {
  const world = await startWorld(t, {
    settings: { POSTERN_MTA_SOURCES: '127.0.0.20 127.0.0.21@transactional 127.0.0.31@bulk' },
  });
  const { db, clock, key, mx } = world;
  const { id } = (await listOrganizations(db))[0]!;
  const from = (to: string) =>
    mx[0]!.messages.find((message) => message.to.includes(to))?.session.from ?? null;
  /** Its status as it was accepted: `sending` at once where this node has the pool. */
  const sendTo = async (to: string) => {
    const emailId = await send(world.url(), key, to);
    const { status } = await db('deliveries').where({ email_id: emailId }).first();
    return { isWaiting: status === 'queued', arrived: () => until(() => from(to), { what: to }) };
  };
  /** Pinned, and the second over: the next mail knows it, as soon as the node has read it. */
  const pin = async (pool: string, holds: (probe: string) => Promise<boolean>) => {
    await assignPool(db, id, pool);
    await clock.advance('1s');
    let probes = 0;
    await until(() => holds(`${pool}-probe-${clock.now()}-${++probes}@there.invalid`), {
      what: `the pin to ${pool}`,
    });
  };
  const comesFrom = (address: string) => async (probe: string) =>
    (await (await sendTo(probe)).arrived()) === address;
  const addresses = { bulk: '127.0.0.31', transactional: '127.0.0.21', default: '127.0.0.20' };
  for (const [pool, address] of [...Object.entries(addresses), ...Object.entries(addresses)]) {
    await pin(pool, comesFrom(address));
    const to = `${pool}-${clock.now()}@there.invalid`;
    await sendTo(to);
    t.is(await until(() => from(to)), address);
  }

  await pin('elsewhere', async (probe) => (await sendTo(probe)).isWaiting);
  await sendTo('queued@there.invalid');
  await clock.advance('11s');
  t.is(from('queued@there.invalid'), null);
  await assignPool(db, id, 'bulk');
  await until(async () => (await clock.advance('1s')) ?? from('queued@there.invalid'));
  t.is(from('queued@there.invalid'), addresses.bulk);
});

test('a mail that was greylisted comes again from the address that it came from', async (t) => {
  const world = await startWorld(t, {
    settings: { POSTERN_MTA_SOURCES: '127.0.0.21 127.0.0.22 127.0.0.23' },
  });
  const first = new Map<string, string>();
  world.mx[0]!.script = {
    rcpt({ address = '', session }) {
      const known = first.get(address);
      first.set(address, known ?? session.from);
      return known === session.from ? undefined : '450 4.2.0 Greylisted, please come again';
    },
  };
  for (let n = 0; n < 6; n++) await send(world.url(), world.key, `mail-${n}@there.invalid`);
  await until(async () => (await world.db('deliveries').where({ status: 'deferred' })).length === 6);
  await world.clock.passUntil(
    async () => (await world.db('deliveries').where({ status: 'delivered' })).length === 6,
    { step: '10s' },
  );
  for (const { to, session } of world.mx[0]!.messages) t.is(session.from, first.get(to[0]!)!);
  t.deepEqual(await world.db('deliveries').pluck('attempts'), Array(6).fill(2));
});
