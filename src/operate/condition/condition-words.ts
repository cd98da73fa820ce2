/** A condition in a few words, for a row that names the destination, and in a sentence, for `email why`. */
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { causes } from './causes.ts';
import type { Condition } from './condition.ts';
import { paceDocument, paceSentence, paceText } from './pace.ts';

/** Formats a time for the reader. */
export type When = (time: number) => string;

export function conditionText(condition: Condition, when: When): string {
  const { cause, since, evidence, order, state, pace, apart } = condition;
  if (apart) return apartText(condition);
  if (order) return orderText(condition, when);
  const parts = [`${causes[cause].label}${since === null ? '' : ` since ${when(since)}`}`];
  if (cause === 'throttled') parts.push(...paceText(pace));
  const isAtWork = cause === 'throttled' || cause === 'busy' || cause === 'slow' || cause === 'ok';
  if (state && isAtWork && (cause !== 'ok' || state.connections > 0)) parts.push(connections(condition));
  const reason = evidence ?? (cause === 'throttled' ? 'another node was asked to slow down' : null);
  return parts.join(', ') + (reason === null ? '' : `: ${reason}`);
}

function orderText({ destination, evidence, order }: Condition, when: When): string {
  const { kind, perMinute, until, destination: ordered } = order!;
  if (kind === 'hold' || kind === 'bounce')
    return `mail to ${ordered} ${kind === 'hold' ? 'is held' : 'bounces'}: ${evidence}`;
  const what = kind === 'slow' ? `slowed to ${perMinute} a minute` : 'suspended';
  return `${ordered === destination ? '' : `${ordered} `}${what} until ${when(until!)}: ${evidence}`;
}

function apartText({ cause, apart }: Condition): string {
  const { count, isWhole, pools = [] } = apart!;
  const some = count === 1 ? '1 of them waits' : `${count} of them wait`;
  if (cause === 'no_source')
    return `${isWhole ? 'waits' : some} for ${poolsNamed(pools)}, which no running node has`;
  if (isWhole) return 'waits for organizations that are paused';
  return `${some}: ${count === 1 ? 'its organization is' : 'their organizations are'} paused`;
}

function poolsNamed(pools: string[]): string {
  return `the IP ${pools.length === 1 ? 'pool' : 'pools'} ${[...new Set(pools)].sort().join(' and ')}`;
}

function connections({ state }: Condition): string {
  const { connections: count, limit } = state!;
  return count < limit
    ? `${count} of ${limit} connections`
    : `${count} ${count === 1 ? 'connection' : 'connections'}`;
}

/** A host that refuses our network or our proofs is not the one that has to act. */
function sideOf({ cause, state }: Condition) {
  const { category = '' } = state?.problem ?? {};
  return cause === 'refusing' && ['policy', 'auth'].includes(category) ? 'ours' : causes[cause].side;
}

/** The members for JSON output. */
export function conditionDocument(condition: Condition) {
  const { cause, severity, since, evidence, pace } = condition;
  return {
    text: conditionText(condition, iso),
    cause,
    side: sideOf(condition),
    severity,
    since: isoOrNull(since),
    reply: evidence,
    ...paceDocument(pace),
  };
}

/** Why mail has not been sent yet. */
export function reasonToWait(condition: Condition, when: When): string {
  const { cause, destination, since, evidence, order, state, apart } = condition;
  const began = since === null ? '' : ` since ${when(since)}`;
  const quoted = evidence === null ? '' : ` ("${evidence}")`;
  switch (cause) {
    case 'suspended':
      return `It waits because the operator suspended ${order!.destination} at ${when(since!)}${quoted}, until ${when(order!.until!)}.`;
    case 'slowed':
      return `It waits for its turn: the operator limited ${order!.destination} at ${when(since!)} to ${order!.perMinute} mails a minute${quoted}, until ${when(order!.until!)}.`;
    case 'held':
    case 'bounced':
      return `Mail to ${order!.destination} ${cause === 'held' ? 'is held' : 'bounces'}${began} by a rule of the operator${quoted}.`;
    case 'busy':
      return `It waits for a connection: all connections to ${destination} are in use (${state!.connections} of ${state!.limit})${began && `,${began}`}.`;
    case 'throttled':
      return `It waits because ${destination} has been asking us${began} to slow down${quoted}; it now gets ${connections(condition)}${paceSentence(condition.pace)}.`;
    case 'greylisting':
      return `${destination} has been greylisting${began}${quoted}: it accepts mail that is retried after a while.`;
    case 'paused':
      return `It waits because the operator has paused its organization${began}${quoted}; the pause does not count toward its maximum age.`;
    case 'no_source':
      return `It waits because its organization sends from ${poolsNamed(apart!.pools ?? [])}, and no running node has an address in it.`;
    case 'no_server':
      return `It has been due${began}, and no server is running; start one.`;
    case 'ok':
      return `It is due, and waits for its turn at ${destination}.`;
    default:
      return `${destination} ${causes[cause].predicate}${began && `,${began}`}${quoted}.${probeNote(condition, when)}`;
  }
}

/** Explains what an open circuit means for the mail that waits. */
function probeNote({ state, blockedUntil }: Condition, when: When): string {
  if (blockedUntil === null || !state?.circuit) return '';
  const { failures } = state.circuit;
  const times = failures === 1 ? 'once' : `${failures} times in a row`;
  return ` It failed ${times}. Postern keeps trying, next ${when(blockedUntil)}, and sends the waiting mail once a host accepts it.`;
}
