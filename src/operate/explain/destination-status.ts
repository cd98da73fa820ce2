/**
 * The status of a destination: in a few words for the queue summary, in a sentence for `email why`. Pure functions of the
 * rows in the database (db/queue/destination-status-rows.ts).
 */
import { iso } from '../../base/clock.ts';
import type { Pause } from '../../db/accounts/organizations.ts';
import type { DestinationRule } from '../../db/queue/destination-rules.ts';
import type {
  DestinationProblem,
  DestinationState,
  DestinationStatuses,
} from '../../db/queue/destination-status-rows.ts';
import type { Suspension } from '../../db/queue/suspensions.ts';
import { throttledMs } from '../../record/destination-health.ts';
import { type Pace, paceDocument, paceOf, paceSentence, paceText } from './pace.ts';
import { problemText, problemWords } from './problem-words.ts';

/** Formats a time for the reader. */
export type When = (time: number) => string;

export type DestinationStatus =
  /** `isWhole`: for all of the subject's domains, not only some. */
  | { is: 'suspended'; suspension: Suspension; isWhole: boolean }
  /** The operator holds or bounces all mail to this domain of the destination, or limits the destination's rate. */
  | { is: 'ruled'; rule: DestinationRule }
  | { is: 'circuit_open'; circuit: NonNullable<DestinationState['circuit']> }
  /** All connections are in use. */
  | { is: 'busy'; state: DestinationState }
  /** It asks us to slow down, and mail waits for it. */
  | { is: 'throttled'; state: DestinationState; since: number; reply: string | null; pace: Pace }
  /** It defers mail that it has not seen before. */
  | ({ is: 'greylisting' } & Greylisted)
  /** Its last attempts failed for another cause, and mail waits for the next one. */
  | { is: 'failing'; problem: DestinationProblem }
  /** The organizations of some or all of its mail are paused; `pause`: set if it is a single one. */
  | { is: 'paused'; count: number; isWhole: boolean; pause: Pause | null }
  /** Some or all of its mail must leave from these IP pools, of which no running node has an address. */
  | { is: 'no_source'; pools: string[]; count: number; isWhole: boolean }
  /** Its mail is due, and no server is running. */
  | { is: 'unattended'; since: number }
  | { is: 'ok'; state: DestinationState | null };

export interface StatusSubject {
  destination: string;
  domains: string[];
  /** When its first mail is, or was, due; null if none is. */
  dueAt: number | null;
  /** How much mail waits there; null if it has not been counted. */
  waiting: number | null;
  /** Mail that waits for IP pools that no running node has; `isWhole`: no other mail waits there. */
  noSource: { pools: string[]; count: number; isWhole: boolean } | null;
  /** Mail that waits because its organization is paused. */
  paused: { count: number; isWhole: boolean; pause: Pause | null } | null;
  /** Set if the waiting mail was greylisted at its last attempt. */
  greylisted: Greylisted | null;
}

/** When the first of the waiting mail was greylisted, and the latest reply. */
interface Greylisted {
  since: number;
  reply: string;
}

export function destinationStatus(
  subject: StatusSubject,
  statuses: DestinationStatuses,
  now: number,
): DestinationStatus {
  const shut = shutByOperator(subject, statuses);
  if (shut) return shut;
  const { destination, dueAt, greylisted } = subject;
  // The published states below are those of a server that has stopped since.
  if (!statuses.isServed && dueAt !== null && dueAt <= now) return { is: 'unattended', since: dueAt };
  const state = statuses.states.get(destination) ?? null;
  if (state?.circuit) return { is: 'circuit_open', circuit: state.circuit };
  const isDue = (dueAt !== null && dueAt <= now) || (state !== null && state.waiting > 0);
  const waits = isDue || dueAt !== null;
  if (state && waits && isThrottled(state, isDue, now)) return throttled(state, subject.waiting, now);
  const limit = statuses.rules.find(({ kind, destination: of }) => kind === 'slow' && of === destination);
  if (limit) return { is: 'ruled', rule: limit };
  if (greylisted) return { is: 'greylisting', ...greylisted };
  if (state?.problem && waits) return ofProblem(state.problem);
  return atItsOwnPace(subject, state, isDue);
}

function atItsOwnPace(
  { noSource, paused }: StatusSubject,
  state: DestinationState | null,
  isDue: boolean,
): DestinationStatus {
  if (state && isDue && state.connections >= state.limit) return { is: 'busy', state };
  if (noSource) return { is: 'no_source', ...noSource };
  return paused ? { is: 'paused', ...paused } : { is: 'ok', state };
}

function throttled(state: DestinationState, waiting: number | null, now: number): DestinationStatus {
  const { busySince, busyReply, problem, lastReply } = state;
  const reply = busyReply ?? problem?.reply ?? lastReply;
  const pace = paceOf(state, waiting, now);
  return { is: 'throttled', state, since: busySince ?? problem!.since, reply, pace };
}

/** Its limit is still lowered when mail is due, or it has asked us to slow down not long ago. */
export function isThrottled(
  { busySince, busyAt, problem }: DestinationState,
  isDue: boolean,
  now: number,
): boolean {
  if (problem?.cause === 'throttled') return true;
  return busySince !== null && (isDue || (busyAt ?? 0) > now - throttledMs);
}

function ofProblem(problem: DestinationProblem): DestinationStatus {
  const { cause, since, reply } = problem;
  return cause === 'greylisting' ? { is: cause, since, reply } : { is: 'failing', problem };
}

/** What the operator, or the lack of a source address, keeps back; null if its mail may be tried. */
function shutByOperator(
  { destination, domains, noSource, paused }: StatusSubject,
  statuses: DestinationStatuses,
): DestinationStatus | null {
  if (paused?.isWhole) return { is: 'paused', ...paused };
  if (noSource?.isWhole) return { is: 'no_source', ...noSource };
  const suspension = suspensionOf(destination, domains, statuses);
  if (suspension) return { is: 'suspended', ...suspension };
  const names = [destination, ...domains];
  const rule = statuses.rules.find(({ kind, destination: of }) => kind !== 'slow' && names.includes(of));
  return rule ? { is: 'ruled', rule } : null;
}

/** Members of JSON output: since when, and with which reply, the destination throttles, greylists or fails; null if not. */
export function reasonsOf(condition: DestinationStatus) {
  const of = ({ since, reply }: { since: number; reply: string | null }) => ({ since: iso(since), reply });
  return {
    throttled: condition.is === 'throttled' ? { ...of(condition), ...paceDocument(condition.pace) } : null,
    greylisting: condition.is === 'greylisting' ? of(condition) : null,
    failing: condition.is === 'failing' ? { cause: condition.problem.cause, ...of(condition.problem) } : null,
  };
}

/** The suspension of the destination itself, or of some of its domains. */
function suspensionOf(destination: string, domains: string[], { suspensions }: DestinationStatuses) {
  const own = suspensions.find((each) => each.destination === destination);
  if (own) return { suspension: own, isWhole: true };
  const some = suspensions.filter((each) => domains.includes(each.destination));
  return some[0] && { suspension: some[0], isWhole: some.length === domains.length };
}

/** The condition in a few words, for a row of the summary, which already names the destination. */
export function conditionText(condition: DestinationStatus, when: When): string {
  switch (condition.is) {
    case 'suspended': {
      const { destination, until, reason } = condition.suspension;
      return `${condition.isWhole ? '' : `${destination} `}suspended until ${when(until)}: ${reason}`;
    }
    case 'ruled':
      return ruleText(condition.rule, when);
    case 'circuit_open':
      return `circuit open, next probe ${when(condition.circuit.nextProbeAt)}`;
    case 'busy':
      return `busy, ${connections(condition.state)}`;
    case 'throttled':
      return `throttled since ${when(condition.since)}${paceText(condition.pace)}, ${connections(condition.state)}: ${condition.reply ?? 'another node was asked to slow down'}`;
    case 'greylisting':
      return `greylisting since ${when(condition.since)}: ${condition.reply}`;
    case 'failing': {
      const { cause, since, reply } = condition.problem;
      return `${problemWords[cause].label} since ${when(since)}: ${reply}`;
    }
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

function ruleText({ kind, destination, perMinute, until, reason }: DestinationRule, when: When): string {
  if (kind === 'slow') return `slowed to ${perMinute} a minute until ${when(until!)}: ${reason}`;
  return `mail to ${destination} ${kind === 'hold' ? 'is held' : 'bounces'}: ${reason}`;
}

function reasonOfRule(rule: DestinationRule, when: When): string {
  const { kind, destination, perMinute, until, createdAt, reason } = rule;
  if (kind === 'slow')
    return `It waits for its turn: the operator limited ${destination} at ${when(createdAt)} to ${perMinute} mails a minute ("${reason}"), until ${when(until!)}.`;
  const what = kind === 'hold' ? 'is held' : 'bounces';
  return `Mail to ${destination} ${what} since ${when(createdAt)} by a rule of the operator ("${reason}").`;
}

function poolsNamed(pools: string[]): string {
  return `the IP ${pools.length === 1 ? 'pool' : 'pools'} ${[...new Set(pools)].sort().join(' and ')}`;
}

function connections({ connections: count, limit }: DestinationState): string {
  return count < limit
    ? `${count} of ${limit} connections`
    : `${count} ${count === 1 ? 'connection' : 'connections'}`;
}

/** Why mail that is due has not been sent yet. */
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
    case 'ruled':
      return reasonOfRule(condition.rule, when);
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
      return `It waits because ${destination} has been asking us since ${when(since)} to slow down${said}; it now gets ${connections(state)}${paceSentence(condition.pace)}.`;
    }
    case 'greylisting':
      return `${destination} has been greylisting since ${when(condition.since)} ("${condition.reply}"): it accepts mail that is retried after a while.`;
    case 'failing':
      return problemText(condition.problem, destination, when);
    case 'paused': {
      const { pause } = condition;
      const since = pause === null ? '' : ` since ${when(pause.since)} ("${pause.reason}")`;
      return `It waits because the operator has paused its organization${since}; the pause does not count toward its maximum age.`;
    }
    case 'no_source':
      return `It waits because its organization sends from ${poolsNamed(condition.pools)}, and no running node has an address in it.`;
    case 'unattended':
      return `It has been due since ${when(condition.since)}, and no server is running; start one.`;
    case 'ok':
      return `It is due, and waits for its turn at ${destination}.`;
  }
}
