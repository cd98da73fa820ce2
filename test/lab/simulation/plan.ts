/**
 * What will happen in a run: a list of items, each with its time and a stream of random numbers of its own, drawn from the seed
 * before the run begins. So a part of the list can be left out, and what is left happens as before: that is how a failure
 * shrinks (scripts/simulate/shrink.ts). Each seed draws from a part of the kinds only, often a small one, so that two faults that
 * must meet do so again and again in some seeds.
 */
import { type DatabaseKind, faults } from './faults.ts';
import { orders } from './orders.ts';
import type { Random } from './random.ts';

export type PlanItem =
  | { kind: 'mails'; at: number; stream: string; count: number }
  | { kind: 'fault' | 'order'; at: number; stream: string; name: string; minutes: number };

export interface PlanSize {
  hours: number;
  mails: number;
  /** Faults for each hour. */
  faultsPerHour: number;
}

const hourMs = 3_600_000;
/** More than the mail that the smallest settings allow in memory. */
const maxBurst = 80;

export function drawPlan(
  random: Random,
  { hours, mails, faultsPerHour }: PlanSize,
  database: DatabaseKind,
): PlanItem[] {
  const items: PlanItem[] = [];
  const span = hours * hourMs;
  const burstShare = random.pick([0.02, 0.1, 0.5]);
  for (let planned = 0, number = 0; planned < mails; number++) {
    const isBurst = random.chance(burstShare) && mails - planned > 5;
    const count = isBurst ? random.integer(5, Math.min(mails - planned, maxBurst)) : random.integer(1, 3);
    items.push({ kind: 'mails', at: random.next() * span, stream: `mails ${number}`, count });
    planned += count;
  }
  const kinds = drawKinds(random, random.pick([1, 2, 3, 4, 6, 12]), database);
  const weights = kinds.map((name) => faults[name]!.weight);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  for (let at = random.exponential(hourMs / faultsPerHour), number = 0; at < span && total > 0; number++) {
    const name = drawWeighted(kinds, weights, random.next() * total);
    const [min, max] = faults[name]!.minutes;
    // Much happens after a fault, too.
    const minutes = Math.min(random.between(min, max), span / 3 / 60_000);
    items.push({ kind: 'fault', at, stream: `fault ${number}`, name, minutes });
    at += random.exponential(hourMs / faultsPerHour);
  }
  const orderKinds = Object.keys(orders).filter(() => random.chance(0.5));
  const ordersPerHour = random.pick([0.01, 2, 10]);
  for (
    let at = random.exponential(hourMs / ordersPerHour), number = 0;
    at < span && orderKinds.length > 0;
    number++
  ) {
    const name = random.pick(orderKinds);
    items.push({ kind: 'order', at, stream: `order ${number}`, name, minutes: random.between(0.2, 30) });
    at += random.exponential(hourMs / ordersPerHour);
  }
  return items.sort((a, b) => a.at - b.at);
}

/** Different ones, the likely ones first. */
function drawKinds(random: Random, count: number, database: DatabaseKind): string[] {
  const left = Object.keys(faults).filter((name) => (faults[name]!.on ?? database) === database);
  return Array.from({ length: count }, () => {
    const weights = left.map((name) => faults[name]!.weight);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const name = drawWeighted(left, weights, random.next() * total);
    left.splice(left.indexOf(name), 1);
    return name;
  });
}

/** `point`: from 0 up to the sum of the weights. */
function drawWeighted(names: string[], weights: number[], point: number): string {
  let end = 0;
  for (const [index, name] of names.entries()) {
    end += weights[index]!;
    if (point < end) return name;
  }
  return names[0]!;
}
