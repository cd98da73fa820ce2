/**
 * How a destination stands, in a word or two for the summary, in a sentence for `email why`: pure functions of what
 * the database says (db/queue/destination-status-rows.ts). `When` writes a time for whoever reads it.
 */
import { iso } from '../../base/clock.ts';
import type { Pause } from '../../db/accounts/organizations.ts';
import type { DestinationState, DestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import type { Suspension } from '../../db/queue/suspensions.ts';

export type When = (time: number) => string;

export type DestinationStatus =
  /** `isWhole`: with all of the domains in question. */
  | { is: 'suspended'; suspension: Suspension; isWhole: boolean }
  | { is: 'circuit_open'; circuit: NonNullable<DestinationState['circuit']> }
  /** All connections are in use. */
  | { is: 'busy'; state: DestinationState }
  /** It asks us to slow down, and mail is due. */
  | { is: 'throttled'; state: DestinationState; since: number; reply: string | null }
  /** It puts off mail that it has not seen before. */
  | ({ is: 'greylisting' } & Greylisted)
  /** The organizations of some of its mail, or of all, are paused; `pause`: where it is known which. */
  | { is: 'paused'; count: number; isWhole: boolean; pause: Pause | null }
  /** No running node has addresses of these pools, which some of its mail, or all of it, is to leave from. */
  | { is: 'no_source'; pools: string[]; count: number; isWhole: boolean }
  /** Its mail is due, and no server is running. */
  | { is: 'unattended'; since: number }
  | { is: 'ok'; state: DestinationState | null };

export interface StatusSubject {
  destination: string;
  domains: string[];
  /** Since when its first mail is due, or when it will be. */
  dueAt: number | null;
  /** What waits for pools of source addresses that no running node has; `isWhole`: nothing else waits there. */
  stranded: { pools: string[]; count: number; isWhole: boolean } | null;
  /** What waits because its organization is paused. */
  paused: { count: number; isWhole: boolean; pause: Pause | null } | null;
  /** The mail that waits was put off by greylisting when it was last tried. */
  greylisted: Greylisted | null;
}

/** Since when some of the mail that waits has been put off, and the latest reply. */
interface Greylisted {
  since: number;
  reply: string;
}

export function destinationStatus(
  { destination, domains, dueAt, stranded, paused, greylisted }: StatusSubject,
  standings: DestinationStatuses,
  now: number,
): DestinationStatus {
  if (paused?.isWhole) return { is: 'paused', ...paused };
  if (stranded?.isWhole) return { is: 'no_source', ...stranded };
  const suspension = suspensionOf(destination, domains, standings);
  if (suspension) return { is: 'suspended', ...suspension };
  // What a server said that has ended since holds no more.
  if (!standings.isServed && dueAt !== null && dueAt <= now) return { is: 'unattended', since: dueAt };
  const state = standings.states.get(destination) ?? null;
  if (state?.circuit) return { is: 'circuit_open', circuit: state.circuit };
  const isDue = (dueAt !== null && dueAt <= now) || (state !== null && state.waiting > 0);
  if (state && isDue && state.busySince !== null) {
    const reply = state.busyReply ?? state.lastReply;
    return { is: 'throttled', state, since: state.busySince, reply };
  }
  if (greylisted) return { is: 'greylisting', ...greylisted };
  if (state && isDue && state.connections >= state.limit) return { is: 'busy', state };
  if (stranded) return { is: 'no_source', ...stranded };
  return paused ? { is: 'paused', ...paused } : { is: 'ok', state };
}

/** Members of JSON documents about a destination that makes mail wait: since when, and why; null where it does not. */
export function reasonsOf(condition: DestinationStatus) {
  const of = (is: 'throttled' | 'greylisting') =>
    condition.is === is ? { since: iso(condition.since), reply: condition.reply } : null;
  return { throttled: of('throttled'), greylisting: of('greylisting') };
}

/** The destination's own, or that of some of its domains. */
function suspensionOf(destination: string, domains: string[], { suspensions }: DestinationStatuses) {
  const own = suspensions.find((each) => each.destination === destination);
  if (own) return { suspension: own, isWhole: true };
  const some = suspensions.filter((each) => domains.includes(each.destination));
  return some[0] && { suspension: some[0], isWhole: some.length === domains.length };
}

/** For a line of the summary, which has the destination's name already. */
export function briefly(condition: DestinationStatus, when: When): string {
  switch (condition.is) {
    case 'suspended': {
      const { destination, until, reason } = condition.suspension;
      return `${condition.isWhole ? '' : `${destination} `}suspended until ${when(until)}: ${reason}`;
    }
    case 'circuit_open':
      return `circuit open, next probe ${when(condition.circuit.nextProbeAt)}`;
    case 'busy':
      return `busy, ${connections(condition.state)}`;
    case 'throttled':
      return `throttled since ${when(condition.since)}, ${connections(condition.state)}: ${condition.reply ?? 'another node was asked to slow down'}`;
    case 'greylisting':
      return `greylisting since ${when(condition.since)}: ${condition.reply}`;
    case 'paused': {
      const { count, isWhole } = condition;
      if (isWhole) return 'waits for organizations that are paused';
      return count === 1
        ? '1 of them waits: its organization is paused'
        : `${count} of them wait: their organizations are paused`;
    }
    case 'no_source': {
      const { pools, count, isWhole } = condition;
      const some = count === 1 ? '1 of them waits' : `${count} of them wait`;
      return `${isWhole ? 'waits' : some} for ${poolsNamed(pools)}, which no running node has`;
    }
    case 'unattended':
      return 'no server is running';
    case 'ok':
      return condition.state && condition.state.connections > 0
        ? `ok, ${connections(condition.state)}`
        : 'ok';
  }
}

function poolsNamed(pools: string[]): string {
  return `the IP ${pools.length === 1 ? 'pool' : 'pools'} ${[...new Set(pools)].sort().join(' and ')}`;
}

function connections({ connections: count, limit }: DestinationState): string {
  return count < limit
    ? `${count} of ${limit} connections`
    : `${count} ${count === 1 ? 'connection' : 'connections'}`;
}

/** Why mail that is due is not sent yet. */
export function reasonToWait(
  condition: DestinationStatus,
  { destination }: StatusSubject,
  when: When,
): string {
  switch (condition.is) {
    case 'suspended': {
      const { destination: named, until, reason, createdAt } = condition.suspension;
      return `It waits because the operator suspended ${named} at ${when(createdAt)} ("${reason}"), until ${when(until)}.`;
    }
    case 'circuit_open': {
      const { since, failures, nextProbeAt, reason } = condition.circuit;
      const times = failures === 1 ? 'once' : `${failures} times`;
      return `It waits because ${destination} failed ${times} in a row (last: ${reason}), and its circuit has been open since ${when(since)}; the next probe is due ${when(nextProbeAt)}.`;
    }
    case 'busy': {
      const { connections: count, limit, busySince } = condition.state;
      const since = busySince === null ? '' : `, since ${when(busySince)}`;
      return `It waits for a connection: all connections to ${destination} are in use (${count} of ${limit})${since}.`;
    }
    case 'throttled': {
      const { state, since, reply } = condition;
      const said = reply === null ? '' : ` ("${reply}")`;
      return `It waits because ${destination} has been asking us since ${when(since)} to slow down${said}; it now gets ${connections(state)}.`;
    }
    case 'greylisting':
      return `${destination} has been greylisting since ${when(condition.since)} ("${condition.reply}"): it accepts mail that is retried after a while.`;
    case 'paused': {
      const { pause } = condition;
      const since = pause === null ? '' : ` since ${when(pause.since)} ("${pause.reason}")`;
      return `It waits because the operator has paused its organization${since}; the pause does not count toward its expiry.`;
    }
    case 'no_source':
      return `It waits because its organization sends from ${poolsNamed(condition.pools)}, and no running node has an address in it.`;
    case 'unattended':
      return `It has been due since ${when(condition.since)}, and no server is running; start one.`;
    case 'ok':
      return `It is due, and waits for its turn at ${destination}.`;
  }
}
