/**
 * `node scripts/attacks.ts [--only 1,3] [--named TEXT] [--json]`: attacks a running server, one attack after the other
 * (attacks/), while another organization sends a small mail every 50 ms, whose p95 must stay under 250 ms. The items are
 * 1 large bodies, 2 many links, 3 reserved space, 4 returned mail, 5 open connections, 6 forged domain reports, 7 redirects,
 * 8 guessed passwords and keys, 9 limits and headers, 10 the walk over every route, 11 a long queue of one organization,
 * 12 shares of what all use, 13 what is not one's own, certificates, 14 received mail; with --named, those whose names have this text.
 * Each has its own server, which scripts/start runs. "Stall" is the longest time in which /health/live did not answer. "Unclear" is an attack of which
 * only times are too long, if others waited for more than 100 ms before it or after it too.
 *
 * Linux, on a quiet machine. Exits 0 if every attack is withstood, 1 if one is not or is unclear. Leaves nothing behind.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { conclude } from '#lab/load/conclude.ts';
import { progress, quantile } from '#lab/load/figures.ts';
import { cpuSeconds } from '#lab/load/processes.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { type Attack, type Verdict, verdict } from './attacks/attack.ts';
import { bounds } from './attacks/bounds.ts';
import type { Observation } from './attacks/bystander.ts';
import { certificates } from './attacks/certificates.ts';
import { connections } from './attacks/connections.ts';
import { domainReports } from './attacks/domain-reports.ts';
import { guesses } from './attacks/guesses.ts';
import { handedOn } from './attacks/handed-on.ts';
import { hostileBodies } from './attacks/hostile-bodies.ts';
import { longQueue } from './attacks/long-queue.ts';
import { manyLinks } from './attacks/many-links.ts';
import { ownership } from './attacks/ownership.ts';
import { receivedMail } from './attacks/received-mail.ts';
import { redirects } from './attacks/redirects.ts';
import { reservations } from './attacks/reservations.ts';
import { returnedMail } from './attacks/returned-mail.ts';
import { type Scene, startScene } from './attacks/scene.ts';
import { shares } from './attacks/shares.ts';
import { walk } from './attacks/walk.ts';

const all: Attack[] = [
  ...hostileBodies,
  ...manyLinks,
  ...reservations,
  ...returnedMail,
  ...receivedMail,
  ...connections,
  ...domainReports,
  ...redirects,
  ...ownership,
  ...handedOn,
  ...certificates,
  ...shares,
  ...guesses,
  ...bounds,
  ...walk,
  ...longQueue,
];

const usage = 'node scripts/attacks.ts [--only ITEM,…] [--named TEXT] [--json] (see its header)';
const args = readOptions(usage, {
  only: { type: 'string' },
  named: { type: 'string', default: '' },
  json: { type: 'boolean', default: false },
});
const attacks = all.filter(({ name }) => name.includes(args.named));
const items = args.only?.split(',').map(Number) ?? [...new Set(attacks.map(({ item }) => item))];
if (attacks.length === 0 || !items.every((item) => attacks.some((attack) => attack.item === item))) {
  console.error(`there is no such attack; the items are 1 to 14\nusage: ${usage}`);
  process.exit(2);
}

const maxOthersMs = 250;
/** An attack that is shorter is watched for so long. */
const minWindowMs = 500;
const defaultTimeoutMs = 30_000;
/** A server that has just started is slower. */
const warmUpMs = 1_500;
/** Before an attack others are watched so long, and again while they are slow: other work on the machine may pass. */
const idleMs = 1_000;
const idleRounds = 3;
const maxIdleMs = 100;

interface Result extends Verdict {
  item: number;
  attack: string;
  /** Of the sends of the other organization, in milliseconds. */
  idleP95: number;
  othersP95: number;
  othersRefused: number;
  /** The longest that the event loop stood still. */
  stallMs: number;
  /** What the server's process has worked meanwhile; on a busy machine this says more than times do. */
  cpuSeconds: number;
  /** Only times are too long, and they were too long before or after the attack. */
  isUnclear: boolean;
}

const p95Of = ({ sends }: Observation) =>
  quantile(
    sends.map(({ ms }) => ms),
    0.95,
  );

async function watchIdle({ bystander }: Scene): Promise<number> {
  let p95 = Number.POSITIVE_INFINITY;
  for (let round = 0; round < idleRounds && p95 > maxIdleMs; round++) {
    await sleep(idleMs);
    const now = Date.now();
    p95 = p95Of(await bystander.observed(now - idleMs, now));
  }
  return p95;
}

async function attackOnce(attack: Attack, scene: Scene): Promise<Result> {
  const idleP95 = await watchIdle(scene);
  const { item, name, timeoutMs = defaultTimeoutMs, maxStallMs = Number.POSITIVE_INFINITY } = attack;
  const spent = cpuSeconds([scene.pid]);
  const from = Date.now();
  const overdue = `it was not over after ${timeoutMs / 1000} s`;
  const { faults, figure } = await Promise.race([
    attack.run(scene).catch((error: Error) => ({ figure: '', faults: [error.message.split('\n')[0]!] })),
    sleep(timeoutMs, { figure: '', faults: [overdue] }, { ref: false }),
  ]);
  scene.endConnections();
  await sleep(Math.max(from + minWindowMs - Date.now(), 0));
  const seen = await scene.bystander.observed(from, Date.now());
  const othersP95 = p95Of(seen);
  const othersRefused = seen.sends.filter(({ status }) => status !== 200).length;
  const stallMs = Math.max(...seen.probes.map(({ ms }) => ms));
  const others = `another organization's ${seen.sends.length} sends`;
  const own = verdict(
    figure,
    [!scene.hasEnded(), 'the server has ended'],
    [othersRefused === 0, `${othersRefused} of ${others} failed`],
  );
  const slow = verdict(
    figure,
    [stallMs <= maxStallMs, `nobody was answered for ${stallMs} ms`],
    [othersP95 <= maxOthersMs, `the p95 of ${others} is ${othersP95} ms, idle ${idleP95} ms`],
  );
  const broken = [...faults, ...own.faults];
  // Other work on the machine may have begun during the attack.
  const isSlow = broken.length === 0 && slow.faults.length > 0;
  const isUnclear = isSlow && Math.max(idleP95, await watchIdle(scene)) > maxIdleMs;
  const cpu = Math.round((cpuSeconds([scene.pid]) - spent) * 10) / 10;
  const measured = { idleP95, othersP95, othersRefused, stallMs, cpuSeconds: Math.max(cpu, 0) };
  return { item, attack: name, figure, ...measured, isUnclear, faults: [...broken, ...slow.faults] };
}

/** Whether the next attack can be made on this server: it is there, and answers at once. */
async function isWell({ url, hasEnded }: Scene): Promise<boolean> {
  if (hasEnded()) return false;
  const answer = fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(1_000) });
  return answer.then(
    ({ ok }) => ok,
    () => false,
  );
}

async function attackItem(item: number, stage: Stage, results: Result[]): Promise<void> {
  const waiting = attacks.filter((attack) => attack.item === item);
  while (waiting.length > 0) {
    const { place = 'usual' } = waiting[0]!;
    const isHere = () => waiting.length > 0 && (waiting[0]!.place ?? 'usual') === place;
    await stage.nested(async (own) => {
      const scene = await startScene(own, place);
      await sleep(warmUpMs);
      do {
        const result = await attackOnce(waiting.shift()!, scene);
        results.push(result);
        tell(result);
      } while (isHere() && (await isWell(scene)));
      scene.endConnections();
    });
  }
}

function standing({ faults, isUnclear }: Result): string {
  if (isUnclear) return 'unclear';
  return faults.length === 0 ? 'held' : 'broken';
}

function tell(result: Result): void {
  const { item, attack, figure, othersP95, stallMs } = result;
  progress(
    `${item} ${standing(result)}: ${attack}; ${figure}; stall ${stallMs} ms, others' p95 ${othersP95} ms (idle ${result.idleP95} ms), CPU ${result.cpuSeconds} s`,
  );
}

function print(results: Result[]): void {
  const table = new Table({
    head: ['item', 'attack', '', 'figure', 'stall', "others' p95 (idle)", 'CPU'],
    style: { head: [], border: [] },
    colWidths: [6, 38, 9, 48, 10, 14, 9],
    wordWrap: true,
  });
  for (const result of results) {
    const { item, attack, figure, stallMs, othersP95, idleP95, cpuSeconds: cpu } = result;
    const others = `${othersP95} ms (${idleP95} ms)`;
    table.push([item, attack, standing(result), figure, `${stallMs} ms`, others, `${cpu} s`]);
  }
  console.log(table.toString());
}

const results: Result[] = [];
const interrupted = await runScript('attacks', async (stage) => {
  for (const item of items) await attackItem(item, stage, results);
  return [];
});
const broken = results.flatMap((one) => one.faults.map((fault) => `${one.item}, ${one.attack}: ${fault}`));
const faults = [...broken, ...interrupted];
const holds = `All ${results.length} attacks were withstood.`;
conclude({ faults, json: args.json && { results }, print: () => print(results), holds });
