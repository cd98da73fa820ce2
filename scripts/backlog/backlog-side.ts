/**
 * One side of the comparison: a Postern on its own database, empty or with a queue and a past, with the time that it took to
 * start. It can be frozen (SIGSTOP) while the other side is measured.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Amounts, addOverdue, deadDomain, fill } from '#lab/database/backlog-rows.ts';
import { progress } from '#lab/load/figures.ts';
import type { Stage } from '#lab/load/stage.ts';
import type { SmtpSink } from '#lab/mx/smtp-sink.ts';
import { type Measured, startMeasured } from '#lab/scenes/measured-postern.ts';
import { until } from '#lab/until.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { domainOf } from '../bench/bench-cases.ts';

export interface Side {
  name: string;
  postern: Measured;
  sink: SmtpSink;
  start: Start;
  /** Environment for the command line. */
  env: Record<string, string>;
  freeze(): void;
  thaw(): void;
}

/** Milliseconds from the start of the process. */
export interface Start {
  servesMs: number;
  /** Until mail for a healthy destination was delivered that became due after all other waiting mail. */
  firstMs: number;
  allMs: number;
}

export interface SidePlan {
  name: string;
  amounts: Amounts;
  databaseUrl: string | null;
  settings: Record<string, string>;
}

/** Mails that are due for the healthy destination when the process starts. */
const dueAtStart = 200;

export async function startSide(stage: Stage, sink: SmtpSink, plan: SidePlan): Promise<Side> {
  const { name, amounts, databaseUrl, settings } = plan;
  const zone = zoneOfDead(amounts.destinations);
  const open = () => startMeasured(stage, sink, { databaseUrl, settings, zone });
  const begun = performance.now();
  const onProgress = (mails: number) => {
    if (mails % 1_000_000 === 0) progress(`${name}: ${mails / 1e6} million mails made`);
  };
  const db = await startFilled(stage, { open, databaseUrl, amounts, onProgress });
  if (amounts.past > 0) progress(`${name}: filled in ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  await addOverdue(db, domainOf(0), dueAtStart);
  const before = await sink.count();
  const spawned = performance.now();
  const arrivals = watch(sink, before, spawned);
  const postern = await open();
  const start = { servesMs: postern.startMs, ...(await arrivals) };
  progress(
    `${name}: serves after ${start.servesMs.toFixed(0)} ms, first ${start.firstMs.toFixed(0)} ms, all ${start.allMs.toFixed(0)} ms`,
  );
  return {
    name,
    postern,
    sink,
    start,
    env: {
      POSTERN_DATA_DIR: join(stage.directory, 'postern'),
      ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
    },
    freeze: () => process.kill(postern.pid, 'SIGSTOP'),
    thaw: () => process.kill(postern.pid, 'SIGCONT'),
  };
}

interface Filling {
  open(): Promise<Measured>;
  databaseUrl: string | null;
  amounts: Amounts;
  onProgress?(mails: number): void;
}

/** A database with a queue and a past, made of mails that a server of its own has sent and left. No server runs on it. */
export async function startFilled(
  stage: Stage,
  { open, databaseUrl, amounts, onProgress }: Filling,
): Promise<Db> {
  const dataDir = join(stage.directory, 'postern');
  await mkdir(dataDir, { recursive: true });
  const db = await stage.start(openDatabase({ dataDir, databaseUrl }), (it) => it.destroy());
  const first = await open();
  const templates = await makeTemplates(first, db);
  await first.end();
  await fill(db, templates, amounts, onProgress);
  return db;
}

async function watch(sink: SmtpSink, before: number, spawned: number) {
  const reached = async (count: number) => {
    await until(async () => (await sink.count()) >= before + count, {
      timeout: 600_000,
      what: 'mail that was due at the start',
    });
    return performance.now() - spawned;
  };
  return { firstMs: await reached(1), allMs: await reached(dueAtStart) };
}

/** Sends one mail that is delivered and one that is deferred, so that their rows can be multiplied. */
async function makeTemplates({ url, key }: Measured, db: Db) {
  const send = async (to: string) => {
    const text = 'All of this is an ordinary line of a mail.\n'.repeat(4);
    const idempotencyKey = `template ${to}`;
    const body = JSON.stringify({
      from: 'Shop <shop@sender.invalid>',
      to,
      subject: 'Your order',
      text,
      idempotencyKey,
    });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/public/email/send`, { method: 'POST', headers, body });
    return ((await response.json()) as { emailId: string }).emailId;
  };
  const reaches = (emailId: string, status: string) =>
    until(async () => (await db('deliveries').where({ email_id: emailId, status }).first()) !== undefined);
  const delivered = await send(`template@${domainOf(0)}`);
  await reaches(delivered, 'delivered');
  const deferred = await send(`template@${deadDomain(0)}`);
  await reaches(deferred, 'deferred');
  return { delivered, deferred };
}

/** Destinations with one MX host each, where nothing listens. */
export function zoneOfDead(count: number) {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      [deadDomain(index), { MX: [`10 mx.${deadDomain(index)}`] }],
      [`mx.${deadDomain(index)}`, { A: [`127.0.${3 + Math.floor(index / 250)}.${(index % 250) + 1}`] }],
    ]).flat(),
  );
}
