/**
 * How a destination stands, in a word or two for the summary, in a sentence for `email why`: pure functions of what
 * the database says (db/standings.ts). `When` writes a time for whoever reads it.
 */
import type { DestinationState, Standings } from '../db/standings.ts';
import type { Suspension } from '../db/suspensions.ts';

export type When = (time: number) => string;

export type Condition =
  /** `isWhole`: with all of the domains in question. */
  | { is: 'suspended'; suspension: Suspension; isWhole: boolean }
  | { is: 'circuit_open'; circuit: NonNullable<DestinationState['circuit']> }
  | { is: 'busy'; state: DestinationState }
  /** No running node has addresses of these pools, which some of its mail, or all of it, is to leave from. */
  | { is: 'no_source'; pools: string[]; count: number; isWhole: boolean }
  /** Its mail is due, and no running server says anything. */
  | { is: 'unattended'; since: number }
  | { is: 'ok'; state: DestinationState | null };

export interface Place {
  destination: string;
  domains: string[];
  /** Since when its first mail is due, or when it will be. */
  dueAt: number | null;
  /** What waits for pools of source addresses that no running node has; `isWhole`: nothing else waits there. */
  stranded: { pools: string[]; count: number; isWhole: boolean } | null;
}

/** A server looks once a second; a minute later nobody does. */
const patienceMs = 60_000;

export function conditionOf(
  { destination, domains, dueAt, stranded }: Place,
  standings: Standings,
  now: number,
): Condition {
  if (stranded?.isWhole) return { is: 'no_source', ...stranded };
  const suspension = suspensionOf(destination, domains, standings);
  if (suspension) return { is: 'suspended', ...suspension };
  const state = standings.states.get(destination) ?? null;
  if (state?.circuit) return { is: 'circuit_open', circuit: state.circuit };
  const isDue = dueAt !== null && dueAt <= now;
  if (state && state.connections >= state.limit && (isDue || state.waiting > 0)) return { is: 'busy', state };
  if (stranded) return { is: 'no_source', ...stranded };
  const isForgotten = dueAt !== null && dueAt < now - patienceMs && standings.states.size === 0;
  return isForgotten ? { is: 'unattended', since: dueAt } : { is: 'ok', state };
}

/** The destination's own, or that of some of its domains. */
function suspensionOf(destination: string, domains: string[], { suspensions }: Standings) {
  const own = suspensions.find((each) => each.destination === destination);
  if (own) return { suspension: own, isWhole: true };
  const some = suspensions.filter((each) => domains.includes(each.destination));
  return some[0] && { suspension: some[0], isWhole: some.length === domains.length };
}

/** For a line of the summary, which has the destination's name already. */
export function briefly(condition: Condition, when: When): string {
  switch (condition.is) {
    case 'suspended': {
      const { destination, until, reason } = condition.suspension;
      return `${condition.isWhole ? '' : `${destination} `}suspended until ${when(until)}: ${reason}`;
    }
    case 'circuit_open':
      return `circuit open, next probe ${when(condition.circuit.nextProbeAt)}`;
    case 'busy':
      return `busy, ${connections(condition.state)}`;
    case 'no_source': {
      const { pools, count, isWhole } = condition;
      const some = count === 1 ? '1 of them waits' : `${count} of them wait`;
      return `${isWhole ? 'waits' : some} for ${poolsNamed(pools)}, which no running node has`;
    }
    case 'unattended':
      return 'no server runs';
    case 'ok':
      return condition.state && condition.state.connections > 0
        ? `ok, ${connections(condition.state)}`
        : 'ok';
  }
}

function poolsNamed(pools: string[]): string {
  return `the source ${pools.length === 1 ? 'pool' : 'pools'} ${[...new Set(pools)].sort().join(' and ')}`;
}

function connections({ connections: count, limit }: DestinationState): string {
  return count < limit
    ? `${count} of ${limit} connections`
    : `${count} ${count === 1 ? 'connection' : 'connections'}`;
}

/** Why mail that is due is not sent yet. */
export function reasonToWait(condition: Condition, { destination }: Place, when: When): string {
  switch (condition.is) {
    case 'suspended': {
      const { destination: named, until, reason, createdAt } = condition.suspension;
      return `It waits because the operator suspended ${named} at ${when(createdAt)} ("${reason}"), until ${when(until)}.`;
    }
    case 'circuit_open': {
      const { since, failures, nextProbeAt, reason } = condition.circuit;
      const times = failures === 1 ? 'once' : `${failures} times`;
      return `It waits because ${destination} failed ${times} in a row (last: ${reason}), and its circuit is open since ${when(since)}; the next probe is due ${when(nextProbeAt)}.`;
    }
    case 'busy': {
      const { connections: count, limit, busySince } = condition.state;
      const since = busySince === null ? '' : `, since ${when(busySince)}`;
      return `It waits for a connection: all of ${destination} are busy (${count} of ${limit})${since}.`;
    }
    case 'no_source':
      return `It waits because its organization sends from ${poolsNamed(condition.pools)}, and no running node has an address of it.`;
    case 'unattended':
      return `It has been due since ${when(condition.since)}, and no running server says anything of any destination; see that one runs.`;
    case 'ok':
      return `It is due, and waits for its turn at ${destination}.`;
  }
}
