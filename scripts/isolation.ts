/**
 * `node scripts/isolation.ts`: measures whether mail waits for what is not its own: one, for the backlog of a dead destination (its
 * hosts never greet, or never answer a SYN; p95 at most doubled); two, for another organization's backlog at the same destination
 * (less than a tenth of its time); three, for another's large sends (p95 at most doubled, stored about once).
 * Linux, on a quiet machine. Exits 0 if all of that holds, 1 if not.
 *
 *   --mails 200 --every 25 --backlog 5000 --destinations 1 --rounds 3     of part one: a mail every 25 ms; 0 rounds skip it
 *   --tenant-backlog 2000 --probes 5      of part two; 0 skips it
 *   --large-sends on                      off skips part three
 *   --set NAME=VALUE, --json              a Postern setting, may be repeated; print all results as JSON
 */
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { conclude } from '#lab/load/conclude.ts';
import { judgeFairness, measureFairness } from '#lab/load/fairness.ts';
import { median, ms, progress, quantile, tableOf } from '#lab/load/figures.ts';
import { judgeLargeSends, measureLargeSends } from '#lab/load/large-sends.ts';
import { recipients, type Sent, sendAll } from '#lab/load/load.ts';
import { readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { startSilent } from '#lab/mx/silent.ts';
import { type Exchanger, type Sink, startSink } from '#lab/mx/sink.ts';
import { launchPostern } from '#lab/scenes/postern.ts';
import { until } from '#lab/until.ts';

const usage = 'node scripts/isolation.ts [--mails N] [--backlog N] [--rounds N] … (see its header)';

const args = readOptions(usage, {
  mails: { type: 'string', default: '200' },
  every: { type: 'string', default: '25' },
  backlog: { type: 'string', default: '5000' },
  destinations: { type: 'string', default: '1' },
  rounds: { type: 'string', default: '3' },
  'tenant-backlog': { type: 'string', default: '2000' },
  probes: { type: 'string', default: '5' },
  'large-sends': { type: 'string', default: 'on' },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const settings = settingsOf(args.set);
const [mails, every, backlog, destinations] = [args.mails, args.every, args.backlog, args.destinations].map(
  Number,
) as [number, number, number, number];

const healthy = '127.0.0.2';
const warmUp = 300;
const timeoutMs = 120_000;

type Case = 'none' | 'mute' | 'silent';

interface Measured {
  backlog: Case;
  /** Times from the 200, and from the call, to the final dot; without mails that did not arrive. */
  fromAnswer: number[];
  fromCall: number[];
  missing: number;
  acceptedPerSecond: number | null;
  rssMb: number;
}

/** One case: its own Postern, its backlog, the healthy mails. */
async function measure(stage: Stage, kind: Case, round: string): Promise<Measured> {
  const hosts = Array.from({ length: destinations }, (_, number) => `127.0.3.${number + 1}`);
  const mute = kind === 'mute' ? hosts.map((host): Exchanger => ({ host, neverGreets: true })) : [];
  const sink = await stage.start(startSink([{ host: healthy }, ...mute]), (it) => it.stop());
  if (kind === 'silent') await stage.start(startSilent(hosts, sink.port), (it) => it.close());
  const dns = await stage.start(startDns(zoneOf(hosts)), (it) => it.close());
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings });
  const load = { ...postern, interrupted: stage.interrupted };

  await sendAll({ ...load, to: recipients('healthy.invalid', warmUp, 'warm') });
  await until(async () => (await sink.count(healthy)) === warmUp, {
    timeout: timeoutMs,
    what: 'the warm-up mails',
  });
  let acceptedPerSecond: number | null = null;
  if (kind !== 'none') {
    const to = Array.from({ length: backlog }, (_, n) => `lost-${n}@dead${n % destinations}.invalid`);
    const begun = performance.now();
    await sendAll({ ...load, to });
    acceptedPerSecond = Math.round((backlog / (performance.now() - begun)) * 1000);
  }
  // Lets the aftermath of the load end.
  await sleep(2000);
  const sent = await sendAll({
    ...load,
    to: recipients('healthy.invalid', mails, 'mail'),
    intervalMs: every,
  });
  await until(async () => (await sink.count(healthy)) === warmUp + mails, { timeout: timeoutMs }).catch(
    () => {},
  );
  const measured = {
    backlog: kind,
    ...(await timesOf(sink, sent)),
    acceptedPerSecond,
    rssMb: await postern.rssMb(),
  };
  const { fromAnswer, missing } = measured;
  progress(
    `${round}, backlog ${kind}: median ${ms(median(fromAnswer))}, p95 ${ms(quantile(fromAnswer, 0.95))}, ${missing} missing`,
  );
  return measured;
}

function zoneOf(dead: string[]): Zone {
  const zone: Zone = { 'healthy.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [healthy] } };
  for (const [number, host] of dead.entries()) {
    zone[`dead${number}.invalid`] = { MX: [`10 mx.dead${number}.invalid`] };
    zone[`mx.dead${number}.invalid`] = { A: [host] };
  }
  return zone;
}

async function timesOf(sink: Sink, sent: Sent[]) {
  const accepted = await sink.records();
  const arrivals = new Map(accepted.map(({ to, at }) => [to, at]));
  const arrived = sent.filter(({ to }) => arrivals.has(to));
  return {
    // A mail may arrive before the client has read the 200.
    fromAnswer: arrived.map(({ to, answeredAt }) => Math.max(arrivals.get(to)! - answeredAt, 0)),
    fromCall: arrived.map(({ to, calledAt }) => arrivals.get(to)! - calledAt),
    missing: sent.length - arrived.length,
  };
}

interface Isolation {
  table: string;
  figures: Record<string, number>[];
  faults: string[];
}

const p95Of = ({ fromAnswer }: Measured) => quantile(fromAnswer, 0.95);

/** Differences below a millisecond are noise. */
const countable = (time: number) => Math.max(time, 1);

async function isolate(stage: Stage): Promise<Isolation> {
  const all: Measured[] = [];
  const rounds = Number(args.rounds);
  for (let round = 1; round <= rounds; round++) {
    for (const kind of ['none', 'mute', 'silent'] as const) {
      all.push(await stage.nested((scene) => measure(scene, kind, `round ${round} of ${rounds}`)));
    }
  }
  const head = ['backlog', '200 to MX: median', 'p95', 'call to MX: p95', 'p95 ratio', 'missing', 'RSS'];
  const rows: (string | number)[][] = [];
  const faults: string[] = [];
  const over = (kind: Case, figure: (one: Measured) => number) =>
    median(all.filter((one) => one.backlog === kind).map(figure));
  const figures = (['none', 'mute', 'silent'] as const).map((kind) => {
    const p95 = over(kind, p95Of);
    const figure = {
      median: over(kind, ({ fromAnswer }) => median(fromAnswer)),
      p95,
      callP95: over(kind, ({ fromCall }) => quantile(fromCall, 0.95)),
      ratio: countable(p95) / countable(over('none', p95Of)),
      missing: Math.max(...all.filter((one) => one.backlog === kind).map(({ missing }) => missing)),
      rssMb: over(kind, ({ rssMb }) => rssMb),
    };
    const { ratio, missing, rssMb } = figure;
    const name = kind === 'none' ? 'none' : `${backlog} to ${destinations} ${kind}`;
    rows.push([
      name,
      ms(figure.median),
      ms(p95),
      ms(figure.callP95),
      Number.isNaN(ratio) ? '-' : ratio.toFixed(2),
      missing,
      `${rssMb} MB`,
    ]);
    if (missing > 0) faults.push(`backlog ${kind}: ${missing} healthy mails did not arrive`);
    else if (!(ratio < 2)) faults.push(`backlog ${kind}: the p95 is ${ratio.toFixed(2)} times that without`);
    return { ...figure, backlog: kind === 'none' ? 0 : backlog };
  });
  return { table: tableOf(head, rows), figures, faults };
}

if (loadavg()[0]! > availableParallelism() / 2) progress('this machine is busy: the times will be uneven');
const parts: { isolation?: Isolation; fairness?: Isolation; largeSends?: Isolation } = {};
const faults = await runScript('isolation', async (stage) => {
  if (Number(args.rounds) > 0) parts.isolation = await isolate(stage);
  const options = { backlog: Number(args['tenant-backlog']), probes: Number(args.probes), settings };
  if (options.backlog > 0) {
    parts.fairness = judgeFairness(await stage.nested((scene) => measureFairness(scene, options)));
  }
  if (args['large-sends'] !== 'off') {
    parts.largeSends = judgeLargeSends(await stage.nested((scene) => measureLargeSends(scene, settings)));
  }
  return Object.values(parts).flatMap((part) => part.faults);
});
conclude({
  faults,
  json: args.json && {
    isolation: parts.isolation?.figures,
    fairness: parts.fairness?.figures[0],
    largeSends: parts.largeSends?.figures[0],
  },
  print: () => Object.values(parts).map(({ table }) => console.log(table)),
});
