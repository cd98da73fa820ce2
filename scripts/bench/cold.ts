/**
 * The first mails after a start. Each round has a new Postern on an empty directory and, for a comparison, a new Postfix. A
 * round before the others is not counted: it warms up the loader and fills the compile cache, as an earlier start would have.
 */
import { progress } from '#lab/load/figures.ts';
import { peakMb } from '#lab/load/processes.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startRelay } from '#lab/programs/postfix-relay.ts';
import { type Plan, setUp, setUpSink, told, workOf } from './bench-measure.ts';
import type { CaseResult, Side } from './bench-report.ts';
import { type PosternRound, type Round, runPostern, runRelay } from './bench-run.ts';

export async function measureCold(stage: Stage, plan: Plan): Promise<CaseResult> {
  const name = `${plan.work.name}, cold`;
  const ours: OneRound<PosternRound>[] = [];
  const theirs: OneRound<Round>[] = [];
  await stage.nested((scene) => coldPostern(scene, plan));
  for (let number = 1; number <= plan.rounds; number++) {
    ours.push(await stage.nested((scene) => coldPostern(scene, plan)));
    progress(`${name}, round ${number}: Postern ${told(ours.at(-1)!.round)}`);
    if (!plan.vsPostfix) continue;
    theirs.push(await stage.nested((scene) => coldRelay(scene, plan)));
    progress(`${name}, round ${number}: Postfix + OpenDKIM ${told(theirs.at(-1)!.round)}`);
  }
  const postfix = plan.vsPostfix ? sideOf(theirs) : null;
  return { name, mails: plan.mails, postern: sideOf(ours), postfix };
}

interface OneRound<Kind extends Round> {
  round: Kind;
  peak: number;
}

async function coldPostern(stage: Stage, plan: Plan) {
  const bench = await setUp(stage, plan);
  const round = await runPostern(bench, workOf(plan, stage), 'cold');
  return { round, peak: peakMb([bench.postern.pid]) };
}

async function coldRelay(stage: Stage, plan: Plan): Promise<OneRound<Round>> {
  const sink = await setUpSink(stage, plan);
  const relay = await startRelay(stage, sink);
  const round = await runRelay(relay, sink, workOf(plan, stage));
  return { round, peak: peakMb(relay.pids) };
}

function sideOf<Kind extends Round>(list: OneRound<Kind>[]): Side<Kind> {
  const peaks = list.map(({ peak }) => peak);
  return { rounds: list.map(({ round }) => round), peakMb: Math.max(...peaks), syncsPerMail: null };
}
