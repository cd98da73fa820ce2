/** Prints the bench's results on a terminal: medians over the rounds, one table for each measurement. */
import Table from 'cli-table3';
import type { Hot, Share } from '#lab/load/cpu-profile.ts';
import { median } from '#lab/load/figures.ts';
import type { PosternRound, Quantiles, Round } from './bench-run.ts';
import type { Step } from './floor.ts';

/** The results of one program: its rounds, and figures for all rounds together. */
export interface Side<Kind extends Round = Round> {
  rounds: Kind[];
  peakMb: number;
  /** Null if not counted. */
  syncsPerMail: number | null;
}

export interface CaseResult {
  name: string;
  mails: number;
  postern: Side<PosternRound>;
  postfix: Side | null;
}

function medianOf<Kind extends Round>({ rounds }: Side<Kind>, figure: (round: Kind) => number): number {
  return median(rounds.map(figure));
}

const whole = (value: number) => value.toFixed(0);
const fine = (value: number) => value.toFixed(value < 10 ? 2 : 1);
const syncs = (side: Side) => (side.syncsPerMail === null ? '-' : side.syncsPerMail.toFixed(3));

export function caseTable(results: CaseResult[]): string {
  const head = [
    'case',
    'mails',
    'accepted/s',
    'delivered/s',
    'accept ms',
    '200 to delivered ms',
    'CPU s/1000',
    'peak MB',
    'syncs/mail',
  ];
  return tableOf(
    head,
    results.map(({ name, mails, postern }) => [
      ...[name, String(mails)],
      whole(medianOf(postern, (round) => round.acceptedPerSecond)),
      whole(medianOf(postern, (round) => round.deliveredPerSecond)),
      spread(postern, ({ accept }) => accept),
      spread(postern, ({ deliver }) => deliver),
      fine(medianOf(postern, (round) => round.cpuPerThousand)),
      ...[String(postern.peakMb), syncs(postern)],
    ]),
  );
}

/** A warning if the machine had other work, which makes rates and times unreliable; otherwise null. */
export function disturbance(results: CaseResult[]): string | null {
  const max = Math.max(
    ...results
      .flatMap(({ postern, postfix }) => [postern, postfix].flatMap((side) => side?.rounds ?? []))
      .map(({ others }) => others),
  );
  if (max < 0.2) return null;
  return `Up to ${max.toFixed(1)} processors were busy with other things meanwhile: trust CPU and syncs, not rates and times.`;
}

/** p50 / p95 / p99, each the median over the rounds. */
function spread(side: Side<PosternRound>, of: (round: PosternRound) => Quantiles): string {
  const figures = (['p50', 'p95', 'p99'] as const).map((name) => medianOf(side, (round) => of(round)[name]));
  return figures.map((value) => value.toFixed(value < 100 ? 1 : 0)).join(' / ');
}

export function peerTable(results: CaseResult[]): string {
  const head = ['case', '', 'accepted/s', 'delivered/s', 'CPU s/1000', 'peak MB', 'syncs/mail'];
  const rows = results.flatMap(({ name, postern, postfix }) => {
    if (!postfix) return [];
    const row = (who: string, side: Side) => [
      ...[name, who],
      whole(medianOf(side, (round) => round.acceptedPerSecond)),
      whole(medianOf(side, (round) => round.deliveredPerSecond)),
      fine(medianOf(side, (round) => round.cpuPerThousand)),
      ...[String(side.peakMb), syncs(side)],
    ];
    // Compares adjacent rounds, because both contain whatever else the machine did in that minute.
    const over = (figure: (round: Round) => number) => {
      const ratios = postern.rounds.map((round, index) => figure(round) / figure(postfix.rounds[index]!));
      return `${median(ratios).toFixed(2)} x`;
    };
    const ratio = [
      ...[name, 'ratio'],
      over((round) => round.acceptedPerSecond),
      over((round) => round.deliveredPerSecond),
      over((round) => round.cpuPerThousand),
      ...['', ''],
    ];
    return [row('Postern', postern), row('Postfix + OpenDKIM', postfix), ratio];
  });
  return tableOf(head, rows);
}

/** The cost of the steps beside the measured total. */
export function floorTable(name: string, steps: Step[], reached: CaseResult): string {
  const sum = steps.reduce((all, { cpuUs }) => all + cpuUs, 0);
  const rows = steps.map(({ step, cpuUs, wallUs }) => [step, whole(cpuUs), whole(wallUs)]);
  rows.push(['sum', whole(sum), '']);
  const reachedUs = medianOf(reached.postern, (round) => round.cpuPerThousand) * 1000;
  const wallUs = 1e6 / medianOf(reached.postern, (round) => round.deliveredPerSecond);
  rows.push(['Postern, all of it', whole(reachedUs), whole(wallUs)]);
  rows.push(['of it not in the steps', whole(reachedUs - sum), '']);
  return tableOf([`floor, ${name}`, 'CPU us/mail', 'time us/mail'], rows);
}

const maxShown = 15;

/** `threads`: CPU seconds per thousand mails, of all threads with the same name. */
export type Profiled = Hot & { threads: Record<string, number> };

export function profileTables(name: string, { behalf, functions, threads }: Profiled): string {
  const table = (what: string, shares: Share[]) =>
    tableOf(
      [`${what}, ${name}`, 'self ms', 'of busy time'],
      shares.slice(0, maxShown).map((one) => [one.what, whole(one.ms), `${(one.share * 100).toFixed(1)} %`]),
    );
  const named = Object.entries(threads).filter(([, seconds]) => seconds >= 0.005);
  const line = named.map(([thread, seconds]) => `${thread} ${seconds.toFixed(2)}`).join(', ');
  return [
    table('on whose behalf', behalf),
    table('functions', functions),
    `CPU s/1000 by thread, ${name}: ${line}`,
  ].join('\n');
}

/** A table without lines between the rows. */
const chars = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

function tableOf(head: string[], rows: string[][]): string {
  const table = new Table({ head, chars, style: { head: [], border: [] } });
  table.push(...rows);
  return table.toString();
}
