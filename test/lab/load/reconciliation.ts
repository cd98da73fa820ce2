/** Compares what Postern recorded with what it promised and what arrived: nothing may be lost or invented. */
import type { Db } from '#platform/database/engine/open.ts';
import { attemptDetail } from '#platform/database/tables/packed-records.ts';
import { until } from '../until.ts';

export interface Audit {
  /** Recipients that were answered 200. */
  answered: number;
  /** Recipients whose mail arrived. */
  arrived: number;
  /** Answered 200 and not arrived. */
  lost: number;
  /** Extra copies, and how many of them have an attempt that is flagged as a possible duplicate. */
  duplicates: number;
  flagged: number;
  /** Reported as delivered and not arrived. */
  invented: number;
  /** Arrived and not reported as delivered. */
  unreported: number;
  /** Credits charged minus the number of deliveries, by the ledger's balance and by its entries. */
  creditsOff: number;
  ledgerOff: number;
}

/**
 * `answered` and `arrived` are recipients, each of which is sent to once; `arrived` has an entry for each copy. `given` is the
 * number of credits that all organizations together were given.
 */
export async function audit(
  db: Db,
  answered: string[],
  arrived: string[],
  creditsGranted = 0,
): Promise<Audit> {
  const copies = new Map<string, number>();
  for (const to of arrived) copies.set(to, (copies.get(to) ?? 0) + 1);
  const reported = new Set<string>(await db('deliveries').where({ status: 'delivered' }).pluck('recipient'));
  const flags = await possibleDuplicates(db);
  const extra = [...copies].filter(([, count]) => count > 1);
  const [orgs] = await db('organizations').sum('ledger_total as total');
  const [entries] = await db('credit_entries').sum('change as total');
  const [deliveries] = await db('deliveries').count('* as n');
  const count = Number(deliveries!.n) - creditsGranted;
  return {
    answered: answered.length,
    arrived: copies.size,
    lost: answered.filter((to) => !copies.has(to)).length,
    duplicates: extra.reduce((sum, [, number]) => sum + number - 1, 0),
    flagged: extra.reduce((sum, [to, number]) => sum + Math.min(number - 1, flags.get(to) ?? 0), 0),
    invented: [...reported].filter((to) => !copies.has(to)).length,
    unreported: [...copies.keys()].filter((to) => !reported.has(to)).length,
    creditsOff: Number(orgs!.total) + count,
    ledgerOff: Number(entries!.total) + count,
  };
}

/** For each recipient, the number of attempts that are flagged as possible duplicates. */
async function possibleDuplicates(db: Db): Promise<Map<string, number>> {
  const rows = await db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .select('recipient', 'attempts.*');
  const counts = new Map<string, number>();
  for (const { recipient, ...row } of rows) {
    if (attemptDetail(row).verdict.possibleDuplicate) counts.set(recipient, (counts.get(recipient) ?? 0) + 1);
  }
  return counts;
}

/** The comparison as rows of a table. */
export const auditRows: [string, (one: Audit) => string | number][] = [
  ['answered 200', (one) => one.answered],
  ['arrived', (one) => one.arrived],
  ['answered 200 and lost', (one) => one.lost],
  ['extra copies, of these flagged', (one) => `${one.duplicates}, ${one.flagged}`],
  ['reported as delivered, not arrived', (one) => one.invented],
  ['arrived, not reported as delivered', (one) => one.unreported],
  ['credits off', (one) => `${one.creditsOff}, ledger ${one.ledgerOff}`],
];

/** Waits until no delivery waits. */
export async function queueEmpty(db: Db, timeoutMs: number): Promise<void> {
  const waiting = () => db('deliveries').whereNotNull('due_at').first('id');
  await until(async () => !(await waiting()), { timeout: timeoutMs, what: 'the queue to be empty' });
}

export function faultsOf(one: Audit): string[] {
  const { lost, duplicates, flagged, invented, unreported, creditsOff, ledgerOff } = one;
  const checks: [number, string][] = [
    [Number(one.answered === 0), 'times nothing was answered 200 at all'],
    [lost, 'mails were answered 200 and did not arrive'],
    [duplicates - flagged, 'extra copies are not flagged'],
    [invented, 'are reported as delivered and did not arrive'],
    [unreported, 'arrived and are not reported as delivered'],
    [creditsOff, 'credits too many or too few are left'],
    [ledgerOff, 'credits are not in the ledger, or too often'],
  ];
  return checks.filter(([count]) => count !== 0).map(([count, what]) => `${count} ${what}`);
}
