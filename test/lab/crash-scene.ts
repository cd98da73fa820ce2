/**
 * A Postern process between a DNS server and an MX host, which a test kills under load, and what must hold afterwards
 * (load/reconciliation.ts). kill-at.ts is loaded by the process that ends itself at a named step.
 */
import type { ExecutionContext } from 'ava';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { createMigrated, type DatabaseKind } from './database/databases.ts';
import { startDns } from './dns/dns.ts';
import { temporaryDirectory } from './evidence.ts';
import { audit, faultsOf, queueEmpty } from './load/reconciliation.ts';
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
 * Sends one mail after the other until the server is gone; notes the recipients of those that were
 * answered 200. Returns the recipient of the call that had no answer.
 */
export async function sendUntilGone(
  url: string,
  key: string,
  name: string,
  promised: string[],
): Promise<string> {
  for (let number = 0; ; number++) {
    const to = `${name}n${number}@there.invalid`;
    try {
      const response = await sendWithKey(url, key, to);
      if (response.status === 200) promised.push(to);
    } catch {
      return to;
    }
  }
}

/** The recipient is the idempotency key. */
export async function sendWithKey(
  url: string,
  key: string,
  to: string,
  fields: object = {},
): Promise<Response> {
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': to,
    },
    body: JSON.stringify({
      to,
      from: 'app@sender.invalid',
      subject: 'Hello',
      text: 'Hello '.repeat(200),
      ...fields,
    }),
  });
  await response.arrayBuffer();
  return response;
}

/** Waits until everything that was promised is at the MX host and nothing waits. */
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
  await queueEmpty(db, timeoutMs);
}

/** Once drained: nothing is lost or invented, every extra copy is flagged, every credit is accounted for, nothing was bounced. */
export async function assertPromises(
  t: ExecutionContext,
  { mx, db }: Pick<CrashScene, 'mx' | 'db'>,
): Promise<void> {
  const arrived = mx.messages.map(({ to }) => to[0]!);
  t.deepEqual(faultsOf(await audit(db, [...recipientsOf(mx)], arrived)), []);
  const rows: { status: string }[] = await db('deliveries').select('status');
  t.true(
    rows.every(({ status }) => status === 'delivered'),
    'all that is kept was delivered',
  );
  const { quota_used: used } = await db('organizations').first('quota_used');
  t.is(used, rows.length, 'one credit for each delivery, none for the others');
}

export function recipientsOf({ messages }: Mx): Set<string> {
  return new Set(messages.map(({ to }) => to[0]!));
}
