/**
 * Postern as the bench runs it: a process that writes its log to a file, as under a service manager (reading a pipe would cost
 * the measuring process time). It can run with Node flags for profiling, or under strace to count its disk syncs. Its cost is
 * read from /proc.
 *
 * The data directory is in the stage's directory, so durability is as good as that of the file system under TMPDIR.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { zoneOf } from '../../../scripts/bench/bench-cases.ts';
import { startDns, type Zone } from '../dns/dns.ts';
import { idAt } from '../load/outcome-times.ts';
import { childrenOf } from '../load/processes.ts';
import type { Stage } from '../load/stage.ts';
import { straceArgs } from '../load/syncs.ts';
import type { SmtpSink } from '../mx/smtp-sink.ts';
import { until } from '../until.ts';
import { launchPostern } from './postern.ts';

export interface Measured {
  url: string;
  key: string;
  pid: number;
  /** Milliseconds from its start until it reported that it serves. */
  startMs: number;
  db: Db;
  dataDir: string;
  /** Waits until it has recorded all of these as delivered; returns the times in the given order. */
  deliveredAt(label: string, count: number): Promise<Map<string, number>>;
  durability(): Promise<string>;
  /** Sends SIGTERM and waits for the end of the process. */
  end(): Promise<unknown>;
}

export interface MeasuredOptions {
  settings: Record<string, string>;
  nodeFlags?: string[];
  /** The file that strace writes. */
  traceTo?: string;
  databaseUrl?: string | null;
  /** The tree that is measured; this one if absent. */
  tree?: string;
  /** DNS records of recipient domains, in addition to the sink's. */
  zone?: Zone;
}

export async function startMeasured(
  stage: Stage,
  sink: SmtpSink,
  options: MeasuredOptions,
): Promise<Measured> {
  const { settings, databaseUrl, zone } = options;
  const dns = await stage.start(startDns({ ...zoneOf(sink.hosts), ...zone }), (it) => it.close());
  const environment = { dns, mtaPort: sink.port, settings, databaseUrl };
  const begun = performance.now();
  let startMs = Number.NaN;
  let end: () => Promise<unknown> = async () => {};
  const { url, key, pid, db, dataDir } = await launchPostern(stage, environment, async (all) => {
    const process = await launch(stage.directory, all, options);
    startMs = performance.now() - begun;
    end = () => process.end('SIGTERM');
    return process;
  });
  const since = idAt(Date.now());
  return {
    url,
    key,
    pid,
    startMs,
    db,
    dataDir,
    async deliveredAt(label, count) {
      const rows = () =>
        db('deliveries')
          .where('id', '>', since)
          .where('recipient', 'like', `${label}-%`)
          .where({ status: 'delivered' })
          .select<{ recipient: string; delivered_at: number }[]>('recipient', 'delivered_at');
      const all = await until(async () => {
        const found = await rows();
        return found.length >= count && found;
      });
      return new Map(all.map((row) => [row.recipient, row.delivered_at]));
    },
    async durability() {
      if (isPostgres(db)) {
        const { rows } = await db.raw('show synchronous_commit');
        return `PostgreSQL, synchronous_commit ${rows[0].synchronous_commit}`;
      }
      const [{ journal_mode: journal }] = await db.raw('pragma journal_mode');
      const [{ synchronous }] = await db.raw('pragma synchronous');
      return `SQLite, journal_mode ${journal}, synchronous ${['off', 'normal', 'full', 'extra'][synchronous]}`;
    },
    end: () => end(),
  };
}

const thisTree = join(import.meta.dirname, '../../..');

/** Runs scripts/start, which sets the same memory limits as in production. */
export async function launch(
  directory: string,
  settings: Record<string, string>,
  { nodeFlags = [], traceTo, tree = thisTree }: Pick<MeasuredOptions, 'nodeFlags' | 'traceTo' | 'tree'> = {},
) {
  const start = join(tree, 'scripts/start');
  const log = join(directory, 'postern.log');
  const command = traceTo ? ['strace', ...straceArgs(traceTo), start] : [start];
  const out = openSync(log, 'w');
  const child = spawn(command[0]!, command.slice(1), {
    env: {
      PATH: process.env.PATH,
      POSTERN_LOG_FORMAT: 'json',
      NODE_OPTIONS: nodeFlags.join(' '),
      ...settings,
    },
    stdio: ['ignore', out, out],
  });
  const ended = once(child, 'exit');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const url = () => /serves at (http:[^\s"]+)/.exec(readFileSync(log, 'utf8'))?.[1];
  await until(() => hasEnded() || url(), { what: 'Postern to serve' });
  if (hasEnded()) throw new Error(`Postern ended at once: ${readFileSync(log, 'utf8')}`);
  const pid = traceTo ? childrenOf(child.pid!)[0]! : child.pid!;
  return {
    url: url()!,
    pid,
    hasEnded,
    async end(signal: 'SIGTERM' | 'SIGKILL') {
      if (!hasEnded()) process.kill(pid, signal);
      await ended;
      return child.exitCode;
    },
  };
}
