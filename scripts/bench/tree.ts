/**
 * Postern of any commit's tree, for comparisons: started by that tree's own `scripts/start` and set up by its own command line,
 * because the schema of another version is another one. It has what the bench needs: a domain, and a key without limits.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import sqlite3 from 'sqlite3';
import { startDns } from '#lab/dns/dns.ts';
import type { Stage } from '#lab/load/stage.ts';
import type { SmtpSink } from '#lab/mx/smtp-sink.ts';
import { launch } from '#lab/scenes/measured-postern.ts';
import { until } from '#lab/until.ts';
import { zoneOf } from './bench-cases.ts';

const run = promisify(execFile);

export const thisTree = resolve(import.meta.dirname, '../..');

export interface TreeServer {
  url: string;
  key: string;
  pid: number;
  /** Waits until so many mails are recorded as delivered. */
  recorded(count: number): Promise<void>;
}

/** The tree of a commit in a directory of the stage, with the packages of this one. */
export async function checkOut(stage: Stage, revision: string): Promise<string> {
  const directory = join(stage.directory, 'tree');
  const git = (...args: string[]) => run('git', ['-C', thisTree, 'worktree', ...args]);
  await stage.start(git('add', '--detach', directory, revision), () => git('remove', '--force', directory));
  if (!existsSync(join(directory, 'node_modules')))
    symlinkSync(join(thisTree, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

export async function startTree(
  stage: Stage,
  tree: string,
  sink: SmtpSink,
  extras: { nodeFlags?: string[]; settings?: Record<string, string> } = {},
): Promise<TreeServer> {
  const dns = await stage.start(startDns(zoneOf(sink.hosts)), (it) => it.close());
  const dataDir = join(stage.directory, 'data');
  const cache = join(stage.directory, '..', tree === thisTree ? 'cache-here' : 'cache-there');
  mkdirSync(cache, { recursive: true });
  const settings = {
    POSTERN_DATA_DIR: dataDir,
    POSTERN_HOSTNAME: 'postern.invalid',
    POSTERN_HTTP_PORT: '0',
    POSTERN_DNS_SERVERS: dns.address,
    POSTERN_MTA_PORT: String(sink.port),
    POSTERN_MTA_ALLOW_PRIVATE: 'true',
    NODE_COMPILE_CACHE: cache,
    ...extras.settings,
  };
  const process_ = await stage.start(
    launch(stage.directory, settings, { tree, nodeFlags: extras.nodeFlags ?? [] }),
    (it) => it.end('SIGKILL'),
  );
  const cli = async (...args: string[]) => {
    const env = { PATH: process.env.PATH, ...settings };
    const { stdout } = await run(join(tree, 'scripts/postern'), [...args, '--json'], { env });
    return JSON.parse(stdout);
  };
  await cli('org', 'create', '--name', 'Bench');
  const unlimited = ['--per-second', '--per-day', '--emails-per-day'].flatMap((name) => [name, 'unlimited']);
  await cli('org', 'limits', 'Bench', ...unlimited);
  const { records } = await cli('domain', 'add', 'sender.invalid', '--org', 'Bench');
  const dkim = records.find(({ purpose }: { purpose: string }) => purpose === 'dkim');
  dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  await cli('domain', 'verify', 'sender.invalid', '--org', 'Bench');
  const { key } = await cli('key', 'create', '--org', 'Bench', '--label', 'bench', '--scope', 'email:send');
  return { url: process_.url, key, pid: process_.pid, recorded: await countDelivered(stage, dataDir) };
}

async function countDelivered(stage: Stage, dataDir: string): Promise<(count: number) => Promise<void>> {
  const file = join(dataDir, 'postern.sqlite');
  const db = await stage.start(
    new Promise<sqlite3.Database>((done, fail) => {
      const opened: sqlite3.Database = new sqlite3.Database(file, sqlite3.OPEN_READONLY, (error) =>
        error ? fail(error) : done(opened),
      );
    }),
    (it) => new Promise((done) => it.close(done)),
  );
  const statement = "select count(*) as n from deliveries where status = 'delivered'";
  const count = () =>
    new Promise<number>((done, fail) => {
      db.get<{ n: number }>(statement, (error, row) => (error ? fail(error) : done(row.n)));
    });
  return async (wanted) => void (await until(async () => (await count()) >= wanted, { timeout: 60_000 }));
}
