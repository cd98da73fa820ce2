/** From hourly figures to what the overview shows: totals of a window and bars of the chart. Pure functions. */

import { type Counts, countNames } from '#mail/record/counts.ts';
import { latencyBounds, quantile } from '#mail/record/latency.ts';
import { type HourFigures, hourMs } from '#mail/record/rows/statistics.ts';

export interface FigureWindow {
  name: string;
  title: string;
  hours: number;
  /** Hours in one bar of the chart. */
  barHours: number;
}

export const windows: FigureWindow[] = [
  { name: '24h', title: '24 hours', hours: 24, barHours: 1 },
  { name: '7d', title: '7 days', hours: 7 * 24, barHours: 6 },
  { name: '30d', title: '30 days', hours: 30 * 24, barHours: 24 },
];

/** The current hour is the window's last. */
export function beginOf({ hours }: Pick<FigureWindow, 'hours'>, now: number): number {
  return now - (now % hourMs) - (hours - 1) * hourMs;
}

export interface Bar extends Counts {
  from: number;
  /** Mail that waits now stands in the newest bars that had so many recipients. */
  waiting: number;
}

export function barsOf(figures: HourFigures[], window: FigureWindow, waiting: number, now: number): Bar[] {
  const begin = beginOf(window, now);
  const bars = Array.from({ length: window.hours / window.barHours }, (_, index) => ({
    from: begin + index * window.barHours * hourMs,
    waiting: 0,
    ...none(),
  }));
  for (const hour of figures) {
    const bar = bars[Math.floor((hour.hour - begin) / (window.barHours * hourMs))];
    if (bar) add(bar, hour);
  }
  let left = waiting;
  for (const bar of bars.toReversed()) {
    bar.waiting = Math.min(left, bar.sent);
    left -= bar.waiting;
  }
  return bars;
}

export function totalOf(figures: Iterable<Counts>): Counts {
  const total = none();
  for (const hour of figures) add(total, hour);
  return total;
}

function none(): Counts {
  return Object.fromEntries(countNames.map((name) => [name, 0])) as unknown as Counts;
}

function add(to: Counts, more: Counts): void {
  for (const name of countNames) to[name] += more[name];
}

/** The end of the count axis: 1, 2 or 5 times a power of ten. */
export function topOf(bars: Bar[]): number {
  const most = Math.max(4, ...bars.map(({ delivered, waiting, bounced }) => delivered + waiting + bounced));
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [1, 2, 5, 10].find((step) => step * power >= most)!;
}

const milestones = [1000, 10_000, 60_000, 300_000, 3_600_000];

/** Time from acceptance to delivery; null if nothing was delivered. */
export function timesOf(figures: HourFigures[]) {
  const counts = [...latencyBounds, Number.POSITIVE_INFINITY].map((_, index) =>
    figures.reduce((sum, { took }) => sum + took[index]!, 0),
  );
  const [median, slow] = [quantile(counts, 0.5), quantile(counts, 0.95)];
  if (!median || !slow) return null;
  const total = counts.reduce((sum, count) => sum + count);
  const within = milestones.map((ms) => {
    const arrived = counts.slice(0, latencyBounds.indexOf(ms) + 1).reduce((sum, count) => sum + count);
    return { ms, share: arrived / total };
  });
  return { median, slow, within };
}
