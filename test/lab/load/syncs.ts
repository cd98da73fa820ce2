/**
 * Counts how often processes ask for a disk sync (fsync, fdatasync), with strace and in a separate run, because tracing slows a
 * process down. If strace is not installed, nothing is counted. strace can also make syncs fail.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../until.ts';
import { median } from './figures.ts';

const onSyncs = ['-f', '-qq', '-e', 'trace=fsync,fdatasync'];

/**
 * Of a program that strace starts. With a seccomp filter only the counted calls are slow; a running program cannot be given
 * one.
 */
export const straceArgs = (file: string) => ['--seccomp-bpf', ...onSyncs, '-o', file];

/** Syncs so far: strace writes a line for each; a line that was split continues as `… resumed`. */
export function syncsIn(file: string): number {
  const lines = readFileSync(file, 'latin1').split('\n');
  return lines.filter((line) => /\bf(data)?sync\(/.test(line)).length;
}

export interface Tracer {
  stop(): Promise<unknown>;
}

/** Traces a running process and the children that it starts from now on. */
export const startTracer = (pid: number, file: string) => attach(pid, [...onSyncs, '-o', file]);

/** Until the process ends, each of its syncs fails with EIO and is not done; its writes still work. */
export async function failSyncs(pid: number): Promise<void> {
  await attach(pid, [...onSyncs, '-e', 'inject=fsync,fdatasync:error=EIO', '-o', '/dev/null']);
}

async function attach(pid: number, args: string[]): Promise<Tracer> {
  const child = spawn('strace', [...args, '-p', String(pid)], {
    stdio: 'ignore',
    detached: true,
  });
  const ended = once(child, 'exit');
  const isTraced = () => !/TracerPid:\s+0\n/.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  const stop = async () => {
    child.kill('SIGINT');
    await ended;
  };
  try {
    await until(isTraced, { what: 'strace to attach' });
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** The file system that a directory is on, and how long a sync of 4 KB takes there. */
export function conditionsOf(directory: string): string {
  const kind = execFileSync('stat', ['-f', '-c', '%T', directory], { encoding: 'utf8' }).trim();
  const file = openSync(join(directory, 'probe'), 'w');
  const times = Array.from({ length: 50 }, () => {
    const begun = performance.now();
    writeSync(file, Buffer.alloc(4096));
    fdatasyncSync(file);
    return performance.now() - begun;
  });
  closeSync(file);
  return `on ${kind}, where a sync takes ${median(times).toFixed(2)} ms`;
}
