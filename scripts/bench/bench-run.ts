/** One round of the bench: the same work through Postern, or through Postfix and OpenDKIM, and its cost. */

import { quantile } from '#lab/load/figures.ts';
import type { Loader } from '#lab/load/loader.ts';
import { busySeconds, cpuSeconds } from '#lab/load/processes.ts';
import type { SmtpSink } from '#lab/mx/smtp-sink.ts';
import type { Relay } from '#lab/programs/postfix-relay.ts';
import type { Measured } from '#lab/scenes/measured-postern.ts';
import { bodyOf, type Case, recipientsOf } from './bench-cases.ts';

export interface Round {
  acceptedPerSecond: number;
  /** End to end: from the first call to the last mail at the sink. */
  deliveredPerSecond: number;
  cpuPerThousand: number;
  /** Processors that other programs kept busy in the meantime. */
  others: number;
}

/** Milliseconds. */
export interface Quantiles {
  p50: number;
  p95: number;
  p99: number;
}

export interface PosternRound extends Round {
  /** From the call to its 200; at a fixed rate, from when the call was due. */
  accept: Quantiles;
  /** From the 200 to the reply to the final dot, as Postern records it in whole milliseconds. */
  deliver: Quantiles;
}

export interface Work {
  work: Case;
  mails: number;
  parallel: number;
  rate: number | null;
  interrupted: AbortSignal;
}

export interface Bench {
  postern: Measured;
  sink: SmtpSink;
  loader: Loader;
}

const timeoutMs = 300_000;

/** `label` is part of the recipients' addresses; each run on a Postern has its own. */
export async function runPostern(
  { postern, sink, loader }: Bench,
  work: Work,
  label: string,
): Promise<PosternRound> {
  const { mails, parallel, rate, interrupted } = work;
  const { batch } = work.work;
  const to = recipientsOf(work.work, mails, label);
  const before = await sink.count();
  const cpu = cpuSeconds([postern.pid]);
  const elsewhere = watchOthers([process.pid]);
  const order = { url: postern.url, key: postern.key, body: bodyOf(work.work), to, parallel, rate, batch };
  const { calledAt, answeredAt } = await loader.run(order);
  const lastAt = await sink.reached(before + mails, interrupted, timeoutMs);
  // The last outcomes are still being written, and count as part of the work.
  const deliveredAt = await postern.deliveredAt(label, mails);
  const spent = cpuSeconds([postern.pid]) - cpu;
  // Several hundred thousand values are too many arguments for one call.
  const begun = calledAt.reduce((one, other) => Math.min(one, other));
  const answered = answeredAt.reduce((one, other) => Math.max(one, other));
  return {
    acceptedPerSecond: (mails / (answered - begun)) * 1000,
    deliveredPerSecond: (mails / (lastAt - begun)) * 1000,
    cpuPerThousand: (spent / mails) * 1000,
    others: elsewhere(),
    accept: quantiles(to.map((_, index) => answeredAt[index]! - calledAt[index]!)),
    deliver: quantiles(to.map((one, index) => Math.max(0, deliveredAt.get(one)! - answeredAt[index]!))),
  };
}

export async function runRelay(relay: Relay, sink: SmtpSink, work: Work): Promise<Round> {
  const { mails, parallel, interrupted } = work;
  const before = await sink.count();
  const cpu = cpuSeconds(relay.pids);
  const elsewhere = watchOthers([process.pid, ...relay.pids]);
  const begun = performance.timeOrigin + performance.now();
  await relay.feed(mails, work.work.bytes, parallel);
  const fedAt = performance.timeOrigin + performance.now();
  const lastAt = await sink.reached(before + mails, interrupted, timeoutMs);
  await relay.drained();
  return {
    acceptedPerSecond: (mails / (fedAt - begun)) * 1000,
    deliveredPerSecond: (mails / (lastAt - begun)) * 1000,
    cpuPerThousand: ((cpuSeconds(relay.pids) - cpu) / mails) * 1000,
    others: elsewhere(),
  };
}

/** CPU time of all processes except `roots` and their descendants. */
function watchOthers(roots: number[]): () => number {
  const [busy, ours, begun] = [busySeconds(), cpuSeconds(roots), performance.now()];
  return () => {
    const theirs = busySeconds() - busy - (cpuSeconds(roots) - ours);
    return Math.max(0, theirs / ((performance.now() - begun) / 1000));
  };
}

function quantiles(values: number[]): Quantiles {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(values, share)) as [
    number,
    number,
    number,
  ];
  return { p50, p95, p99 };
}
