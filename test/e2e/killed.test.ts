/**
 * SIGKILL at random moments under load, several times. Promised: every email that was answered 200 reaches the MX;
 * a copy too many is flagged; nothing is told as delivered that the MX did not get; every credit is accounted for.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { migrate } from '../../src/db/migrate.ts';
import { type Db, openDatabase } from '../../src/db/open.ts';
import { createDatabase, kinds } from '../helpers/databases.ts';
import { startDns } from '../helpers/dns.ts';
import { startMx } from '../helpers/mx.ts';
import { type PosternProcess, startProcess } from '../helpers/process.ts';
import { until } from '../helpers/until.ts';
import { createTenant, testConfig } from '../helpers/world.ts';

const rounds = 5;
const senders = 8;

for (const kind of kinds) {
  test(`${kind}: no email that was answered 200 is lost by kill -9`, async (t) => {
    const { mx, db, key, settings } = await surroundings(t, kind);
    const promised: string[] = [];
    let postern: PosternProcess | undefined;
    t.teardown(() => postern?.end('SIGKILL'));

    for (let round = 0; round < rounds; round++) {
      postern = await startProcess(settings);
      const loads = Array.from({ length: senders }, (_, sender) =>
        load(postern!.url, key, `r${round}s${sender}`, promised),
      );
      const before = promised.length;
      await until(() => promised.length > before + 5, { what: 'the load to get going' });
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 400));
      await postern.end('SIGKILL');
      await Promise.all(loads);
    }

    postern = await startProcess(settings);
    const got = () => new Set(mx.messages.map(({ to }) => to[0]!));
    await until(() => promised.every((address) => got().has(address)), {
      timeout: 30_000,
      what: () => `the MX to get all; missing: ${promised.filter((address) => !got().has(address))}`,
    });
    await until(async () => (await waiting(db)) === 0, { timeout: 30_000, what: 'the queue to run empty' });
    t.is(await postern.end('SIGTERM'), 0);

    t.true(promised.length > rounds * 5, `${promised.length} mails were answered 200`);
    t.deepEqual(
      [...(await delivered(db))].filter((address) => !got().has(address)),
      [],
      'delivered, but not there',
    );
    const flagged = await possibleDuplicates(db);
    t.deepEqual(
      copies(mx.messages.map(({ to }) => to[0]!)).filter((address) => !flagged.has(address)),
      [],
    );
    const [org] = await db('organizations').select('quota_used', 'ledger_total');
    const count = (await db('deliveries').pluck('id')).length;
    t.is(org.quota_used, count, 'one credit for each delivery, none for the others');
    t.is(org.ledger_total, -count);
  });
}

async function surroundings(t: ExecutionContext, kind: (typeof kinds)[number]) {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-kill-'));
  t.teardown(() => rm(dataDir, { recursive: true, force: true }));
  const database = await createDatabase(kind);
  t.teardown(() => database.drop());
  const mx = await startMx();
  t.teardown(() => mx.close());
  const dns = await startDns({
    'there.invalid': { MX: ['10 mx1.invalid'] },
    'mx1.invalid': { A: ['127.0.0.1'] },
  });
  t.teardown(() => dns.close());
  const config = testConfig({ dataDir, databaseUrl: database.url, dns, mtaPort: mx.port });
  const db = await openDatabase(config);
  t.teardown(() => db.destroy());
  await migrate(db);
  const key = await createTenant(db, config, dns);
  const settings = {
    POSTERN_DATA_DIR: dataDir,
    ...(database.url && { POSTERN_DATABASE_URL: database.url }),
    POSTERN_HOSTNAME: 'postern.invalid',
    POSTERN_DNS_SERVERS: dns.address,
    POSTERN_MTA_PORT: String(mx.port),
    POSTERN_MTA_ALLOW_PRIVATE: 'true',
    POSTERN_MTA_RETRY: '1s',
    POSTERN_LOG_LEVEL: 'info',
  };
  return { mx, db, key, settings };
}

/** Sends one mail after the other until the server is gone; notes the recipients of those that were answered 200. */
async function load(url: string, key: string, name: string, promised: string[]): Promise<void> {
  for (let number = 0; ; number++) {
    const to = `${name}n${number}@there.invalid`;
    try {
      const response = await fetch(`${url}/api/public/email/send`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ to, from: 'app@sender.invalid', subject: name, text: 'Hello '.repeat(200) }),
      });
      if (response.status === 200) promised.push(to);
      await response.arrayBuffer();
    } catch {
      return;
    }
  }
}

async function waiting(db: Db): Promise<number> {
  return (await db('deliveries').whereNotNull('due_at').pluck('id')).length;
}

async function delivered(db: Db): Promise<Set<string>> {
  return new Set(await db('deliveries').where({ status: 'delivered' }).pluck('recipient'));
}

async function possibleDuplicates(db: Db): Promise<Set<string>> {
  const rows = await db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .select('recipient', 'verdict');
  return new Set(
    rows.filter(({ verdict }) => JSON.parse(verdict).possibleDuplicate).map(({ recipient }) => recipient),
  );
}

function copies(addresses: string[]): string[] {
  return addresses.filter((address, index) => addresses.indexOf(address) !== index);
}
