/**
 * A host that never answers, on loopback and without help of the network: a listener whose thread sleeps, with its
 * queue of connections full, so that Linux drops every further SYN. Who connects waits until its own patience ends.
 */
import { once } from 'node:events';
import net from 'node:net';
import { Worker } from 'node:worker_threads';
import { until } from '../until.ts';

export interface Silent {
  host: string;
  port: number;
  close(): Promise<void>;
}

const sleeper = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer().listen({ ...workerData, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });`;

/** Linux queues one connection more than the backlog. */
const queued = 2;

export async function startSilent(host: string, port = 0): Promise<Silent> {
  const worker = new Worker(sleeper, { eval: true, workerData: { host, port } });
  const [bound] = await once(worker, 'message');
  const sockets = Array.from({ length: queued }, () => net.connect({ host, port: bound }));
  for (const socket of sockets) socket.on('error', () => {});
  await until(() => sockets.every(({ connecting }) => !connecting), { what: 'the queue to be full' });
  return {
    host,
    port: bound,
    async close() {
      for (const socket of sockets) socket.destroy();
      await worker.terminate();
    },
  };
}
