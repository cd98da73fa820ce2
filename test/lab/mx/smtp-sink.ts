/**
 * The cheapest MX host: Postfix's `smtp-sink`, a C program that accepts mail, discards and counts it (25 microseconds of CPU
 * time per mail here), one process for each address. If it is not installed, test/lab/mx/sink.ts does the same in Node at
 * several times the cost; `kind` says which one runs.
 *
 * The counts are read from the line that the program writes for each mail. The time of the last mail is when its line was
 * written.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, listens } from '../load/ports.ts';
import { isInstalled } from '../programs/programs.ts';
import { until } from '../until.ts';
import { startSink } from './sink.ts';

export interface SmtpSink {
  kind: string;
  hosts: string[];
  port: number;
  /** Mails accepted so far. */
  count(): Promise<number>;
  /** Waits until this many mails were accepted; returns the time of the last one in milliseconds since the epoch. */
  reached(count: number, interrupted: AbortSignal, timeoutMs: number): Promise<number>;
  stop(): Promise<unknown>;
}

/** One sink on each of these addresses, at the same port. */
export async function startSmtpSink(directory: string, hosts: string[]): Promise<SmtpSink> {
  return isInstalled('smtp-sink') ? startC(directory, hosts) : startNode(hosts);
}

async function startC(directory: string, hosts: string[]): Promise<SmtpSink> {
  const port = await freePort(hosts[0]!);
  const counters = hosts.map((host) => startOne(directory, host, port));
  const stop = () => Promise.all(counters.map((one) => one.stop()));
  try {
    const all = async () => (await Promise.all(hosts.map((host) => listens(host, port)))).every(Boolean);
    await until(all, { what: 'smtp-sink to listen' });
  } catch (error) {
    await stop();
    throw error;
  }
  const count = async () => counters.reduce((sum, one) => sum + one.count(), 0);
  const lastAt = async () => Math.max(...counters.map((one) => one.lastAt()));
  return { kind: 'smtp-sink', hosts, port, count, reached: reaching(count, lastAt), stop };
}

function startOne(directory: string, host: string, port: number) {
  const file = openSync(join(directory, `smtp-sink-${host}`), 'w+');
  // As root, the user that it runs as must be given.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn('smtp-sink', [...user, '-c', `${host}:${port}`, '1000'], {
    stdio: ['ignore', file, 'inherit'],
    detached: true,
  });
  const ended = once(child, 'exit');
  const tail = Buffer.alloc(80);
  return {
    /** It writes `sess=1 quit=0 mesg=7` and a carriage return for each mail and at the end of each session. */
    count(): number {
      const { size } = fstatSync(file);
      const length = readSync(file, tail, 0, tail.length, Math.max(0, size - tail.length));
      return Number(/.*mesg=(\d+)\r/s.exec(tail.toString('latin1', 0, length))?.[1] ?? 0);
    },
    lastAt: () => fstatSync(file).mtimeMs,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      closeSync(file);
    },
  };
}

async function startNode(hosts: string[]): Promise<SmtpSink> {
  const sink = await startSink(hosts.map((host) => ({ host })));
  const count = async () => {
    let sum = 0;
    for (const host of hosts) sum += await sink.count(host);
    return sum;
  };
  const lastAt = async () => (await sink.records()).at(-1)?.at ?? 0;
  return {
    kind: 'a Node process, for smtp-sink of the package postfix is not installed',
    hosts,
    port: sink.port,
    count,
    reached: reaching(count, lastAt),
    stop: () => sink.stop(),
  };
}

function reaching(count: () => Promise<number>, lastAt: () => Promise<number>): SmtpSink['reached'] {
  return async (wanted, interrupted, timeoutMs) => {
    await until(
      async () => {
        interrupted.throwIfAborted();
        return (await count()) >= wanted;
      },
      { timeout: timeoutMs, what: `mail number ${wanted} at the sink` },
    );
    return lastAt();
  };
}
