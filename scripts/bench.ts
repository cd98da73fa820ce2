/**
 * `npm run bench`: measures the throughput of Postern from end to end, and its cost: API, queue, delivery to a sink on loopback.
 * Figures are medians over the rounds, CPU time is Postern's. Linux. Exits 0 if everything was measured, 1 if not, 2 if a
 * program must be installed or root is needed. Leaves nothing behind.
 *
 *   --quick, --rounds 3 --mails 4000 --parallel 64    one short round; or rounds per case, mails per round, concurrent callers
 *   --case NAME          4k, 4k-tracked, 4k-many, 4k-many-tracked, or the same with 40k; 100k, 100k-tracked; batch; may be
 *                        repeated; default: all but batch
 *   --vs postfix         the same work through Postfix and OpenDKIM, in turns; needs root
 *   --rate 200, --floor, --profile     latency at a fixed rate; the cost of each step alone; where the threads spend their time
 *   --idle, --cold       only what a minute without mail costs; only the first 5,000 mails after a start, with 32 callers
 *   --waiting            only what mail costs that waits, in each state, on both databases, with 400 and 20,000 mails; with
 *                        --against REV, also of that commit's tree; --state NAME, may be repeated; --mails, --database; with
 *                        --statements, also each statement's number a minute
 *   --cost               only the CPU time of a mail, cold, warm and at low rates, in units of an RSA-2048 signature; with
 *                        --against REV [--pairs 8], in pairs with another commit's tree; with --check, fails if it is
 *                        15 % above the recorded cost
 *   --kept [--mails 5000]      only the disk that mails of a case take at three ages, on both databases
 *   --set NAME=VALUE, --json FILE      a Postern setting, may be repeated; also write all results as JSON
 */
import { writeFileSync } from 'node:fs';
import { progress } from '#lab/load/figures.ts';
import { startLoader } from '#lab/load/loader.ts';
import { endIf, readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { obstacle } from '#lab/programs/postfix.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { type Case, cases } from './bench/bench-cases.ts';
import { countSyncs, floorOf, measureCase, type Plan, profileCase } from './bench/bench-measure.ts';
import {
  type CaseResult,
  caseTable,
  disturbance,
  floorTable,
  type Profiled,
  peerTable,
  profileTables,
} from './bench/bench-report.ts';
import { measureCold } from './bench/cold.ts';
import { costTable, measureCost, measurePairs, pairsTable } from './bench/cost.ts';
import { checkCost } from './bench/cost-check.ts';
import type { Step } from './bench/floor.ts';
import { idleTable, measureIdle } from './bench/idle.ts';
import { keptTable, measureKept } from './bench/kept.ts';
import { checkOut, thisTree } from './bench/tree.ts';
import { measureWaiting, statementTables, type WaitingFigures, waitingTable } from './bench/waiting.ts';

const args = readOptions('node scripts/bench.ts [--quick] [--case NAME]… [--vs postfix] … (see its header)', {
  quick: { type: 'boolean', default: false },
  case: { type: 'string', multiple: true, default: [] },
  vs: { type: 'string' },
  rate: { type: 'string' },
  floor: { type: 'boolean', default: false },
  profile: { type: 'boolean', default: false },
  idle: { type: 'boolean', default: false },
  cold: { type: 'boolean', default: false },
  kept: { type: 'boolean', default: false },
  waiting: { type: 'boolean', default: false },
  statements: { type: 'boolean', default: false },
  state: { type: 'string', multiple: true, default: [] },
  database: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
  cost: { type: 'boolean', default: false },
  against: { type: 'string' },
  check: { type: 'boolean', default: false },
  pairs: { type: 'string', default: '8' },
  rounds: { type: 'string' },
  mails: { type: 'string' },
  parallel: { type: 'string' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
});
const rate = args.rate === undefined ? null : Number(args.rate);
const common = {
  rate,
  rounds: Number(args.rounds ?? (args.quick || rate !== null ? 1 : 3)),
  mails: Number(args.mails ?? defaultMails()),
  parallel: Number(args.parallel ?? (args.cold ? 32 : 64)),
  vsPostfix: args.vs !== undefined,
  settings: settingsOf(args.set),
};
const chosen = args.case.length > 0 ? cases.filter(({ name }) => args.case.includes(name)) : defaultCases();

function defaultMails(): number {
  if (rate !== null) return rate * 15;
  if (args.cold) return 5000;
  return args.quick ? 1000 : 4000;
}

/** All cases; for an option that examines one case, the first. */
function defaultCases(): Case[] {
  return args.profile || args.floor || args.idle || args.cold || args.cost || rate !== null
    ? cases.slice(0, 1)
    : cases.filter(({ batch }) => batch === 1);
}

const measures = args.cold ? measureCold : measureCase;

async function runCase(stage: Stage, plan: Plan): Promise<CaseResult> {
  const result = await stage.nested((scene) => measures(scene, plan));
  if (!isInstalled('strace')) return result;
  const syncs = await stage.nested((scene) => countSyncs(scene, plan));
  result.postern.syncsPerMail = syncs.postern;
  if (result.postfix) result.postfix.syncsPerMail = syncs.postfix;
  return result;
}

/** Runs what the options ask for and prints each result at once; returns everything for --json. */
async function runAll(stage: Stage) {
  const loader = await stage.start(startLoader(), (it) => it.stop());
  const plans = chosen.map((work): Plan => ({ ...common, work, loader }));
  const results: CaseResult[] = [];
  const floors: Record<string, Step[]> = {};
  const profiles: Record<string, Profiled> = {};
  for (const plan of plans) results.push(await runCase(stage, plan));
  console.log(caseTable(results));
  if (args.vs) console.log(peerTable(results));
  const disturbed = disturbance(results);
  if (disturbed) console.log(disturbed);
  for (const plan of args.floor ? plans : []) {
    const { name } = plan.work;
    floors[name] = await stage.nested((scene) => floorOf(scene, plan));
    const reached = results.find((one) => one.name === name)!;
    console.log(floorTable(name, floors[name], reached));
  }
  for (const plan of args.profile ? plans : []) {
    const { name } = plan.work;
    profiles[name] = await stage.nested((scene) => profileCase(scene, plan));
    console.log(profileTables(name, profiles[name]));
  }
  return { results, floors, profiles };
}

async function runIdle(stage: Stage) {
  const loader = await stage.start(startLoader(), (it) => it.stop());
  const idle = await measureIdle(stage, { ...common, work: chosen[0]!, loader });
  console.log(idleTable(idle));
  return idle;
}

async function runKept(stage: Stage) {
  const kept = [];
  for (const onPostgres of [false, true]) {
    const work = {
      mails: Number(args.mails ?? 5000),
      bytes: chosen[0]!.bytes,
      settings: common.settings,
      onPostgres,
    };
    kept.push(await stage.nested((scene) => measureKept(scene, work)));
    console.log(keptTable(kept.at(-1)!));
  }
  return kept;
}

async function runWaiting(stage: Stage) {
  const trees = [{ tree: thisTree, treeName: 'here' }];
  if (args.against !== undefined)
    trees.push({ tree: await checkOut(stage, args.against), treeName: args.against });
  const only = args.state.length > 0 ? args.state : null;
  const counts = args.mails === undefined ? [400, 20_000] : [Number(args.mails)];
  const minutes = common.rounds;
  const all: WaitingFigures[] = [];
  for (const database of args.database) {
    for (const mails of counts) {
      const plan = { onPostgres: database === 'postgres', mails, settings: common.settings, only, minutes };
      // At the same time, because other programs may keep the machine busy.
      const found = await Promise.all(trees.map((tree) => measureWaiting(stage, { ...plan, ...tree })));
      all.push(...found.flat());
    }
  }
  console.log(waitingTable(all));
  if (args.statements) console.log(statementTables(all, minutes));
  return all;
}

async function runCost(stage: Stage) {
  const loader = await stage.start(startLoader(), (it) => it.stop());
  const plan = { work: chosen[0]!, loader };
  const revision = args.against;
  if (revision === undefined) {
    const cost = await measureCost(stage, plan);
    console.log(costTable(cost));
    return cost;
  }
  const pairs = await measurePairs(stage, plan, { revision, pairs: Number(args.pairs) });
  console.log(pairsTable(pairs, revision));
  return pairs;
}

async function runCheck(stage: Stage): Promise<string[]> {
  const loader = await stage.start(startLoader(), (it) => it.stop());
  return checkCost(stage, { work: chosen[0]!, loader });
}

/** A sentence that says why it cannot be run as asked. */
function hindrance(): string | null {
  if (chosen.length === 0)
    return `there is no such case; there are ${cases.map(({ name }) => name).join(', ')}`;
  if (args.vs === undefined) return null;
  if (rate !== null) return '--rate: Postfix cannot be fed at a fixed rate; leave out --vs';
  return args.vs === 'postfix' ? obstacle() : `--vs ${args.vs}: there is only --vs postfix`;
}

const run = args.cost
  ? runCost
  : args.kept
    ? runKept
    : args.waiting
      ? runWaiting
      : args.idle
        ? runIdle
        : runAll;
endIf(hindrance());
if (!isInstalled('strace')) progress('disk syncs are not counted: apt-get install strace');
const faults = await runScript('bench', async (stage) => {
  if (args.cost && args.check) return runCheck(stage);
  const all = await run(stage);
  if (args.json) writeFileSync(args.json, `${JSON.stringify(all, null, 2)}\n`);
  return [];
});
if (faults.length > 0) console.error(faults.join('\n'));
process.exit(faults.length === 0 ? 0 : 1);
