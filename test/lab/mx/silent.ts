/**
 * Hosts on loopback that never answer a SYN, as behind a firewall that drops packets: a listener whose thread sleeps, with
 * its short backlog of connections full, so that Linux drops further SYNs. A client waits until its own timeout. Linux only.
 */
import { once } from 'node:events';
import net from 'node:net';
import { Worker } from 'node:worker_threads';
import { until } from '../until.ts';

export interface Silent {
  port: number;
  close(): Promise<void>;
}

const sleeper = `
  const { parentPort, workerData: { hosts, port } } = require('node:worker_threads');
  let bound = port;
  const listen = ([host, ...others]) => {
    const server = require('node:net').createServer().listen({ host, port: bound, backlog: 1 }, () => {
      bound = server.address().port;
      if (others.length > 0) return listen(others);
      parentPort.postMessage(bound);
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    });
  };
  listen(hosts);`;

/** Linux queues one connection more than the backlog. */
const queued = 2;

/** All hosts have the same port. */
export async function startSilent(hosts: string[], port = 0): Promise<Silent> {
  const worker = new Worker(sleeper, { eval: true, workerData: { hosts, port } });
  const [bound] = await once(worker, 'message');
  const sockets = hosts.flatMap((host) =>
    Array.from({ length: queued }, () => net.connect({ host, port: bound })),
  );
  for (const socket of sockets) socket.on('error', () => {});
  await until(() => sockets.every(({ connecting }) => !connecting), { what: 'the backlog to be full' });
  return {
    port: bound,
    async close() {
      for (const socket of sockets) socket.destroy();
      await worker.terminate();
    },
  };
}
