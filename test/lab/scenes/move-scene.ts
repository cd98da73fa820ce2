/**
 * A stopped Postern on SQLite with data to move: a past, and a queue of mail in every waiting state. Two mails are really sent,
 * one delivered and one deferred, and multiplied (test/lab/database/backlog-rows.ts). The command line holds part of the waiting mail. A last
 * start, killed while it tries the due mail, leaves mail in the state `sending`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, openDatabase } from '../../../src/db/engine/open.ts';
import { migrate } from '../../../src/db/schema/migrate.ts';
import { postern, run } from '../cli.ts';
import { deadDomain, fill } from '../database/backlog-rows.ts';
import type { Dns, Zone } from '../dns/dns.ts';
import type { Stage } from '../load/stage.ts';
import { until } from '../until.ts';
import { startProcess } from './process.ts';
import { createTenant, testConfig, testSettings } from './world.ts';

const destinations = 40;
/** The domains whose waiting mail is held. */
const held = [deadDomain(3), deadDomain(17)];

interface Scene {
  dataDir: string;
  dns: Dns;
  mtaPort: number;
  mails: number;
  waiting: number;
}

/** A zone in which waiting mail can be delivered. */
export function zoneOf(host: string): Zone {
  const domains = Array.from({ length: destinations }, (_, index) => deadDomain(index));
  return Object.fromEntries([
    ...[...domains, 'there.invalid'].map((domain) => [domain, { MX: ['10 mx.invalid'] }]),
    ['mx.invalid', { A: [host] }],
  ]);
}

/** Settings of the processes. */
export async function makeSource(stage: Stage, scene: Scene): Promise<Record<string, string>> {
  const { dataDir, dns, mtaPort, mails, waiting } = scene;
  const where = { dataDir, databaseUrl: null, dns, mtaPort };
  const settings = testSettings(where, { POSTERN_LOG_LEVEL: 'info' });
  const launch = () => stage.start(startProcess(settings), (it) => it.end('SIGKILL'));
  const db = await openDatabase({ dataDir, databaseUrl: null });
  try {
    await migrate(db);
    const key = await createTenant(db, testConfig(where), dns);
    const first = await launch();
    const templates = {
      delivered: await send(first.url, key, db, 'template@there.invalid', 'delivered'),
      deferred: await send(first.url, key, db, `template@${deadDomain(0)}`, 'deferred'),
    };
    await first.end('SIGTERM');
    const past = mails - waiting - 1;
    await fill(db, templates, { waiting: waiting - 1, past, destinations, organizations: 5 });
    // Helper tables of `fill`, which do not belong to Postern.
    const scaffold: string[] = await db('sqlite_master')
      .where('name', 'like', 'backlog_%')
      .where({ type: 'table' })
      .pluck('name');
    for (const table of scaffold) await db.schema.dropTable(table);
    for (const domain of held)
      await command(['queue', 'hold', '--domain', domain, '--reason', 'a move'], settings);
    const last = await launch();
    await until(async () => (await db('deliveries').whereNotNull('lease_owner').first()) !== undefined, {
      timeout: 30_000,
      what: 'a delivery to be under way',
    });
    await sleep(100);
    await last.end('SIGKILL');
    return settings;
  } finally {
    await db.destroy();
  }
}

async function send(url: string, key: string, db: Db, to: string, status: string): Promise<string> {
  const text = 'All of this is an ordinary line of a mail.\n'.repeat(20);
  const mail = { from: 'Shop <shop@sender.invalid>', to, subject: 'Your order', text, idempotencyKey: to };
  const answer = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(mail),
  });
  const { emailId } = (await answer.json()) as { emailId: string };
  await until(
    async () => (await db('deliveries').where({ email_id: emailId, status }).first()) !== undefined,
  );
  return emailId;
}

/** Runs a command and returns its output; rejects if it fails. */
export async function command(args: string[], settings: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await run(postern, args, { PATH: process.env.PATH, ...settings });
  if (code !== 0) throw new Error(`postern ${args[0]} failed: ${stderr}`);
  return stdout.toString();
}
