/**
 * `node scripts/backlog.ts`: compares a Postern that has a million waiting and ten million past mails with one that has none.
 * Throughput must be within 15 %, start-up under 3 s, memory under 300 MB, each dashboard page within 100 ms (p95).
 * Linux, 30 GB under TMPDIR. Exits 0 if all of that holds, 1 if not. Leaves nothing behind.
 *
 *   --waiting 1000000 --past 10000000 --destinations 400 --organizations 20     the mails, and among what the waiting are divided
 *   --rounds 3 --mails 4000 --parallel 64     of each throughput measurement
 *   --postgres           use PostgreSQL instead of SQLite
 *   --set NAME=VALUE     a Postern setting; may be repeated
 *   --json FILE          also write all results as JSON
 */
import { writeFileSync } from 'node:fs';
import type { Amounts } from '#lab/database/backlog-rows.ts';
import { startPostgres } from '#lab/database/postgres.ts';
import { conclude } from '#lab/load/conclude.ts';
import { median, progress, tableOf } from '#lab/load/figures.ts';
import { type Loader, startLoader } from '#lab/load/loader.ts';
import { peakMb } from '#lab/load/processes.ts';
import { readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { type SmtpSink, startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { timePages } from './backlog/backlog-pages.ts';
import { type Side, type Start, startSide } from './backlog/backlog-side.ts';
import { type Times, timeCommands, timeStatements } from './backlog/backlog-statements.ts';
import { cases } from './bench/bench-cases.ts';
import { type PosternRound, runPostern } from './bench/bench-run.ts';

const args = readOptions('node scripts/backlog.ts [--waiting N] [--past N] [--postgres] … (see its header)', {
  waiting: { type: 'string', default: '1000000' },
  past: { type: 'string', default: '10000000' },
  destinations: { type: 'string', default: '400' },
  organizations: { type: 'string', default: '20' },
  postgres: { type: 'boolean', default: false },
  rounds: { type: 'string', default: '3' },
  mails: { type: 'string', default: '4000' },
  parallel: { type: 'string', default: '64' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
});
const amounts: Amounts = {
  waiting: Number(args.waiting),
  past: Number(args.past),
  destinations: Number(args.destinations),
  organizations: Number(args.organizations),
};
const rounds = Number(args.rounds);

interface Result {
  name: string;
  start: Start;
  rounds: PosternRound[];
  peakMb: number;
  statements: Times;
  commands: Times;
  /** 95th percentiles. */
  pages: Times;
}

async function measure(stage: Stage): Promise<Result[]> {
  const loader = await stage.start(startLoader(), (it) => it.stop());
  const sink = await stage.start(startSmtpSink(stage.directory, ['127.0.1.1']), (it) => it.stop());
  const full = await sideOn(stage, sink, 'full', amounts);
  full.freeze();
  return stage.nested(async (scene) => {
    const empty = await sideOn(scene, sink, 'empty', { ...amounts, waiting: 0, past: 0 });
    empty.freeze();
    const sides = [empty, full];
    const measured = sides.map((side) => ({ side, rounds: [] as PosternRound[] }));
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      for (const each of measured) {
        const result = await runRound(stage, each.side, { sink, loader, round });
        if (round > 0) each.rounds.push(result);
      }
    }
    const results: Result[] = [];
    for (const each of measured) results.push(await finish(each.side, each.rounds));
    return results;
  });
}

async function sideOn(stage: Stage, sink: SmtpSink, name: string, some: Amounts): Promise<Side> {
  const server = args.postgres ? await stage.start(startPostgres(stage.directory), (it) => it.stop()) : null;
  const databaseUrl = server?.url ?? null;
  return startSide(stage, sink, { name, amounts: some, databaseUrl, settings: settingsOf(args.set) });
}

async function runRound(
  { interrupted }: Stage,
  { name, postern, thaw, freeze }: Side,
  { sink, loader, round }: { sink: SmtpSink; loader: Loader; round: number },
): Promise<PosternRound> {
  thaw();
  const work = { work: cases[0]!, mails: Number(args.mails), parallel: Number(args.parallel), rate: null };
  const result = await runPostern({ postern, sink, loader }, { ...work, interrupted }, `round${round}`);
  const { acceptedPerSecond, deliveredPerSecond, cpuPerThousand, others } = result;
  progress(
    `${name}, round ${round}: ${acceptedPerSecond.toFixed(0)}/s accepted, ${deliveredPerSecond.toFixed(0)}/s delivered, ` +
      `${cpuPerThousand.toFixed(2)} CPU s/1000, ${others.toFixed(1)} processors busy with other things`,
  );
  freeze();
  return result;
}

async function finish({ name, postern, start, env, thaw }: Side, list: PosternRound[]): Promise<Result> {
  thaw();
  const peak = peakMb([postern.pid]);
  const pages = await timePages(postern);
  await postern.end();
  const statements = await timeStatements(postern.db);
  const commands = await timeCommands(postern.db, env);
  return { name, start, rounds: list, peakMb: peak, statements, commands, pages };
}

const medianOf = ({ rounds: list }: Result, figure: (round: PosternRound) => number) =>
  median(list.map(figure));

function print([empty, full]: [Result, Result]): void {
  const whole = (value: number) => value.toFixed(0);
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const rows: [string, (one: Result) => number, (value: number) => string][] = [
    ['accepted/s', (one) => medianOf(one, (round) => round.acceptedPerSecond), whole],
    ['delivered/s', (one) => medianOf(one, (round) => round.deliveredPerSecond), whole],
    ['CPU s/1000', (one) => medianOf(one, (round) => round.cpuPerThousand), (value) => value.toFixed(2)],
    ['accept p95', (one) => medianOf(one, (round) => round.accept.p95), ms],
    ['200 to delivered p95', (one) => medianOf(one, (round) => round.deliver.p95), ms],
    ['serves after', (one) => one.start.servesMs, ms],
    ['first of 200 due is delivered', (one) => one.start.firstMs, ms],
    ['all of 200 are', (one) => one.start.allMs, ms],
    ['memory, at most', (one) => one.peakMb, (value) => `${value} MB`],
    ...Object.keys(empty.statements).map((name): (typeof rows)[number] => [
      name,
      (one) => one.statements[name]!,
      ms,
    ]),
    ...Object.keys(empty.pages).map((name): (typeof rows)[number] => [
      name,
      (one) => one.pages[name] ?? Number.NaN,
      ms,
    ]),
    ...Object.keys(empty.commands).map((name): (typeof rows)[number] => [
      `postern ${name}`,
      (one) => one.commands[name]!,
      ms,
    ]),
  ];
  const head = ['', 'empty', `${amounts.waiting} waiting, ${amounts.past} past`, 'ratio'];
  const shown = rows.map(([what, of, show]) => {
    return [what, show(of(empty)), show(of(full)), (of(full) / of(empty)).toFixed(2)];
  });
  console.log(tableOf(head, shown));
}

function faultsOf([empty, full]: [Result, Result]): string[] {
  const faults: string[] = [];
  for (const name of ['acceptedPerSecond', 'deliveredPerSecond'] as const) {
    // Compares adjacent rounds, because both contain whatever else the machine did in that minute.
    const ratio = median(full.rounds.map((round, index) => round[name] / empty.rounds[index]![name]));
    if (ratio < 0.85) faults.push(`${name} is ${ratio.toFixed(2)} of what it is with nothing waiting`);
  }
  if (full.start.servesMs > 3000) faults.push(`it serves after ${full.start.servesMs.toFixed(0)} ms`);
  if (full.peakMb > 300)
    faults.push(`it had ${full.peakMb} MB of memory (${empty.peakMb} with nothing waiting)`);
  for (const [name, p95] of Object.entries(full.pages))
    if (p95 > 100) faults.push(`${name} takes ${p95.toFixed(0)} ms`);
  return faults;
}

let results: Result[] = [];
const faults = await runScript('backlog', async (stage) => {
  results = await measure(stage);
  print(results as [Result, Result]);
  return faultsOf(results as [Result, Result]);
});
if (args.json) writeFileSync(args.json, `${JSON.stringify({ amounts, results, faults }, null, 2)}\n`);
conclude({ faults });
