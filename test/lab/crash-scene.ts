import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { type Db, openDatabase } from '../../src/db/engine/open.ts';
import { createMigrated, type DatabaseKind } from './database/databases.ts';
import { startDns } from './dns/dns.ts';
import { temporaryDirectory } from './evidence.ts';
import { type Mx, startMx } from './mx/mx.ts';
import { createTenant, testConfig, testSettings } from './scenes/world.ts';
import { until } from './until.ts';

export interface CrashScene {
  mx: Mx;
  db: Db;
  key: string;
  settings: Record<string, string>;
}

export async function createCrashScene(
  t: ExecutionContext,
  kind: DatabaseKind,
  more: Record<string, string> = {},
): Promise<CrashScene> {
  const dataDir = await temporaryDirectory(t);
  const database = await createMigrated(kind, dataDir);
  t.teardown(() => database.drop());
  const mx = await startMx();
  t.teardown(() => mx.close());
  const dns = await startDns({
    'there.invalid': { MX: ['10 mx1.invalid'] },
    'mx1.invalid': { A: ['127.0.0.1'] },
  });
  t.teardown(() => dns.close());
  const where = { dataDir, databaseUrl: database.url, dns, mtaPort: mx.port };
  const config = testConfig(where, more);
  const db = await openDatabase(config);
  t.teardown(() => db.destroy());
  const key = await createTenant(db, config, dns);
  return {
    mx,
    db,
    key,
    settings: testSettings(where, { POSTERN_MTA_RETRY: '1s', POSTERN_LOG_LEVEL: 'info', ...more }),
  };
}

/**
 * Sends one mail after the other until the server is gone, `restMs` between them; notes the recipients of those that were
 * answered 200. Returns the recipient of the call that had no answer.
 */
export async function sendUntilGone(
  url: string,
  key: string,
  name: string,
  promised: string[],
  pauseMs = 0,
): Promise<string> {
  for (let number = 0; ; number++) {
    const to = `${name}n${number}@there.invalid`;
    try {
      const response = await sendWithKey(url, key, to);
      if (response.status === 200) promised.push(to);
    } catch {
      return to;
    }
    if (pauseMs > 0) await sleep(pauseMs);
  }
}

/** The recipient is the idempotency key. */
export async function sendWithKey(url: string, key: string, to: string): Promise<Response> {
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': to,
    },
    body: JSON.stringify({ to, from: 'app@sender.invalid', subject: 'Hello', text: 'Hello '.repeat(200) }),
  });
  await response.arrayBuffer();
  return response;
}

/** Until all that was promised is at the MX and nothing waits any more. */
export async function drained(
  { mx, db }: Pick<CrashScene, 'mx' | 'db'>,
  promised: string[],
  timeoutMs = 120_000,
): Promise<void> {
  const missing = () => {
    const arrived = recipientsOf(mx);
    return promised.filter((address) => !arrived.has(address));
  };
  await until(() => missing().length === 0, {
    timeout: timeoutMs,
    what: () => `the MX to get all; missing: ${missing()}`,
  });
  const waiting = () => db('deliveries').whereNotNull('due_at').pluck('id');
  await until(async () => (await waiting()).length === 0, {
    timeout: timeoutMs,
    what: 'the queue to run empty',
  });
}

/** Once drained: what is told is true, a copy too many is flagged, every credit is accounted for. */
export async function assertPromises(
  t: ExecutionContext,
  { mx, db }: Pick<CrashScene, 'mx' | 'db'>,
): Promise<void> {
  const arrived = recipientsOf(mx);
  const rows: { recipient: string; status: string }[] = await db('deliveries').select('recipient', 'status');
  const reported = rows.filter(({ status }) => status === 'delivered').map(({ recipient }) => recipient);
  t.deepEqual(
    reported.toSorted(),
    [...arrived].toSorted(),
    'what is told as delivered is there, and nothing else',
  );
  t.is(reported.length, rows.length, 'all that is kept was delivered');

  const copies = mx.messages.map(({ to }) => to[0]!);
  for (const address of await flagged(db))
    if (copies.includes(address)) copies.splice(copies.indexOf(address), 1);
  t.is(copies.length, new Set(copies).size, 'each copy too many has an attempt that is flagged');

  const [org] = await db('organizations').select('quota_used', 'ledger_total');
  const [ledger] = await db('credit_entries').sum('change as total');
  t.is(org.quota_used, rows.length, 'one credit for each delivery, none for the others');
  t.is(org.ledger_total, -rows.length);
  t.is(Number(ledger!.total), -rows.length);
}

function recipientsOf({ messages }: Mx): Set<string> {
  return new Set(messages.map(({ to }) => to[0]!));
}

/** The recipients of attempts that may have been the first of two copies, one for each attempt. */
async function flagged(db: Db): Promise<string[]> {
  const rows: { recipient: string; verdict: string }[] = await db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .select('recipient', 'verdict');
  return rows
    .filter(({ verdict }) => JSON.parse(verdict).possibleDuplicate)
    .map(({ recipient }) => recipient);
}
