/**
 * How the service is doing: one verdict, what is wrong, the most urgent first, and what the operator has ordered. The
 * command line, `top` and the dashboard show the same. The cost does not grow with the mail that waits: it reads the published
 * states of destinations, small tables and the statistics of a day, and counts mail only for what it lists, up to a limit.
 */

import { readDestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { paceDocument } from '#operate/condition/pace.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { readDestinationNeeds } from './destination-needs.ts';
import { type Need, ranked } from './need.ts';
import { type Order, readOrders } from './operator-orders.ts';
import { readOrganizationNeeds } from './organization-needs.ts';
import { readServerNeeds } from './server-needs.ts';
import { nextSetUpStep } from './set-up-steps.ts';
import { type AddressWarmUp, readAddressWarmUps, warmUpDocument, warmUpNeeds } from './warm-ups.ts';

export interface Status {
  at: number;
  /** Whether a server is running that sends mail. */
  isServed: boolean;
  /** Before the first domain is verified, the command to run next. */
  setUp: string | null;
  needs: Need[];
  /** The destinations that are part of another entry: of `no_way_out`. */
  folded: Need[];
  /** Destinations in trouble that are not listed. */
  more: number;
  orders: Order[];
  /** Source addresses that are new to receivers. */
  warmUps: AddressWarmUp[];
}

export async function readStatus(parts: {
  db: Db;
  config: Config;
  now: number;
  /** Whether a server that sends is running, if the caller knows. */
  served?: boolean;
  triesLock?: boolean;
}): Promise<Status> {
  const { db, config, now, served, triesLock = false } = parts;
  const statuses = await readDestinationStatuses(db, now, served);
  const server = await readServerNeeds({ db, config, statuses, now, triesLock });
  const { needs, ...rest } = await readDestinationNeeds(db, statuses, { now, port: config.mtaPort });
  const organizations = await readOrganizationNeeds(db, now, config.receivedStore);
  const warmUps = await readAddressWarmUps(db, config, now);
  const all = [...server, ...needs, ...organizations, ...warmUpNeeds(warmUps)];
  return {
    at: now,
    isServed: statuses.isServed,
    setUp: await nextSetUpStep(db),
    needs: ranked(all.map((need) => notAhead(need, now))),
    ...rest,
    orders: await readOrders(db, statuses),
    warmUps,
  };
}

/** Nothing lasts since a time to come, which a clock that was ahead has left behind. */
const notAhead = (need: Need, now: number): Need =>
  need.since !== null && need.since > now ? { ...need, since: now } : need;

export type StatusVerdict = Pick<Status, 'setUp' | 'needs' | 'more'>;

export function isWell({ setUp, needs }: Omit<StatusVerdict, 'more'>): boolean {
  return setUp === null && needs.every(({ severity }) => severity === 'watch');
}

/** The verdict as a sentence. */
export function verdictText({ setUp, needs, more }: StatusVerdict): string {
  const act = needs.filter(({ severity }) => severity === 'act').length;
  const watch = needs.length - act + more;
  const act1 = act === 0 ? 'No problem needs' : `${act} ${act === 1 ? 'problem needs' : 'problems need'}`;
  const counts = act + watch === 0 ? null : `${act1} action${watch === 0 ? '' : `, ${watch} to watch`}.`;
  if (setUp !== null) return ['Not set up: no domain is verified.', counts].filter(Boolean).join(' ');
  return counts ?? 'All good.';
}

export function statusDocument(status: Status) {
  const verdict = status.setUp === null ? 'needs_attention' : 'not_set_up';
  return {
    verdict: isWell(status) ? 'well' : verdict,
    summary: verdictText(status),
    next: status.setUp,
    at: iso(status.at),
    isServed: status.isServed,
    needs: status.needs.map(needDocument),
    folded: status.folded.map(needDocument),
    more: status.more,
    orders: status.orders.map(({ since, until, ...order }) => ({
      ...order,
      since: isoOrNull(since),
      until: isoOrNull(until),
    })),
    warmUps: status.warmUps.map(warmUpDocument),
  };
}

function needDocument({ cause, severity, subject, since, figure, command, advice, reply, traffic }: Need) {
  return {
    cause,
    severity,
    subject,
    since: isoOrNull(since),
    figure,
    command,
    advice,
    reply: reply ?? null,
    waiting: traffic?.waiting ?? null,
    ...paceDocument(traffic ?? { perMinute: null, drainMs: null }),
  };
}
