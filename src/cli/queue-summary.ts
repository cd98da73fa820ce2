/** `postern queue summary`: what waits where, by its age as Postfix's qshape has it, and how each destination stands. */
import type { Command } from 'commander';
import { iso } from '../clock.ts';
import { type DomainQueue, summarizeQueue, type Waiting } from '../db/queue-view.ts';
import { type DestinationState, readStandings, type Standings } from '../db/standings.ts';
import { replyText } from '../outcome.ts';
import type { Context } from './context.ts';
import type { Cell } from './output.ts';
import { briefly, type Condition, conditionOf } from './standing.ts';
import { timeOfDay } from './times.ts';

/** qshape's: each twice the one before, in minutes. */
const ages = [5, 10, 20, 40, 80, 160, 320];
const ageNames = [...ages.map((minutes) => `${minutes}m`), 'older'];

/** A destination with all that waits for it. */
interface Line {
  destination: string;
  domains: string[];
  counts: Record<Waiting, number>;
  parked: number;
  ages: number[];
  oldestAt: number | null;
  dueAt: number | null;
  lastReply: string | null;
  lastReplyAt: number | null;
  state: DestinationState | null;
  condition: Condition;
  nextAttemptAt: number | null;
}

export function summaryCommand(queue: Command, { db, out, now }: Context): void {
  queue
    .command('summary')
    .description('Count what waits, one line a destination, by age; its condition, next try and last reply.')
    .option('--domains', 'one line a recipient domain')
    .action(async ({ domains: isByDomain = false }: { domains?: boolean }) => {
      const at = now();
      const bounds = ages.map((minutes) => minutes * 60_000);
      const queues = await summarizeQueue(await db(), { now: at, bounds });
      const lines = linesOf(queues, await readStandings(await db(), at), isByDomain, at);
      const when = out.terminal && !out.json ? (time: number) => timeOfDay(time, at) : iso;
      const conditions = lines.map((line) => briefly(line.condition, when));
      const head = [isByDomain ? 'DOMAIN' : 'DESTINATION', 'TOTAL', ...ageNames, 'HELD', 'SENDING'];
      out.print(
        lines.map((line, index) => lineDocument(line, conditions[index]!)),
        {
          head,
          rows: lines.map((line) => cellsOf(line, isByDomain)),
          empty: 'Nothing waits.',
          cut: 'first',
          below: {
            head: [...(isByDomain ? ['at'] : []), '', 'oldest', 'next', 'last reply:'],
            rows: lines.map((line, index) => [
              ...(isByDomain ? [line.destination] : []),
              conditions[index]!,
              { time: line.oldestAt },
              { time: line.nextAttemptAt, due: line.nextAttemptAt !== null && line.nextAttemptAt < at },
              line.lastReply,
            ]),
          },
        },
      );
    });
}

function linesOf(queues: DomainQueue[], standings: Standings, isByDomain: boolean, now: number): Line[] {
  const groups = Map.groupBy(queues, ({ domain, destination }) => (isByDomain ? domain : destination));
  const lines = [...groups.values()].map((group) => lineOf(group, standings, now));
  const named = new Set(lines.flatMap(({ destination, domains }) => [destination, ...domains]));
  // A suspension is not to be forgotten because nothing waits for it yet.
  const idle = standings.suspensions.filter(({ destination }) => !named.has(destination));
  return [...lines, ...idle.map(({ destination }) => idleLine(destination, standings, now))];
}

function lineOf(group: DomainQueue[], standings: Standings, now: number): Line {
  const { destination } = group[0]!;
  const domains = group.map(({ domain }) => domain);
  const sum = (countOf: (queue: DomainQueue) => number) =>
    group.reduce((all, each) => all + countOf(each), 0);
  const dueTimes = group.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []);
  const dueAt = dueTimes.length === 0 ? null : Math.min(...dueTimes);
  const state = standings.states.get(destination) ?? null;
  const condition = conditionOf({ destination, domains, dueAt }, standings, now);
  return {
    destination,
    domains,
    counts: {
      queued: sum(({ counts }) => counts.queued),
      sending: sum(({ counts }) => counts.sending),
      deferred: sum(({ counts }) => counts.deferred),
      held: sum(({ counts }) => counts.held),
    },
    parked: sum(({ parked }) => parked),
    ages: ageNames.map((_, at) => sum((queue) => queue.ages[at]!)),
    oldestAt: Math.min(...group.map(({ oldestAt }) => oldestAt)),
    dueAt,
    ...latestReply(group, state),
    state,
    condition,
    nextAttemptAt: nextAttemptAt(dueAt, condition),
  };
}

function idleLine(destination: string, standings: Standings, now: number): Line {
  return {
    destination,
    domains: [],
    counts: { queued: 0, sending: 0, deferred: 0, held: 0 },
    parked: 0,
    ages: ageNames.map(() => 0),
    ...{ oldestAt: null, dueAt: null, lastReply: null, lastReplyAt: null, nextAttemptAt: null },
    state: standings.states.get(destination) ?? null,
    condition: conditionOf({ destination, domains: [], dueAt: null }, standings, now),
  };
}

/** What the mail that waits has met, or the server since then with other mail. */
function latestReply(
  group: DomainQueue[],
  state: DestinationState | null,
): Pick<Line, 'lastReply' | 'lastReplyAt'> {
  const said = [
    ...group.map(({ lastReply, lastReplyAt }) => ({
      lastReply: lastReply && replyText(lastReply),
      lastReplyAt,
    })),
    { lastReply: state?.lastReply ?? null, lastReplyAt: state?.lastReplyAt ?? null },
  ];
  return said.reduce((a, b) => ((b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a));
}

/** What is due already is tried when its destination may be. */
function nextAttemptAt(dueAt: number | null, condition: Condition): number | null {
  if (dueAt === null) return null;
  if (condition.is === 'suspended' && condition.isWhole) return Math.max(dueAt, condition.suspension.until);
  return condition.is === 'circuit_open' ? Math.max(dueAt, condition.circuit.nextProbeAt) : dueAt;
}

function totalOf({ counts }: Line): number {
  return counts.queued + counts.sending + counts.deferred + counts.held;
}

function cellsOf(line: Line, isByDomain: boolean): Cell[] {
  const name = isByDomain ? (line.domains[0] ?? line.destination) : line.destination;
  const numbers = [totalOf(line), ...line.ages, line.counts.held, line.counts.sending];
  return [name, ...numbers.map((count) => ({ count }))];
}

function lineDocument(line: Line, condition: string) {
  const { destination, domains, counts, parked, state } = line;
  const suspension = line.condition.is === 'suspended' ? line.condition.suspension : null;
  return {
    destination,
    domain: domains.length === 1 ? domains[0] : null,
    domains,
    total: totalOf(line),
    ...counts,
    parked,
    ages: Object.fromEntries(ageNames.map((name, at) => [name, line.ages[at]])),
    oldestAt: isoOrNull(line.oldestAt),
    dueAt: isoOrNull(line.dueAt),
    nextAttemptAt: isoOrNull(line.nextAttemptAt),
    lastReply: line.lastReply,
    lastReplyAt: isoOrNull(line.lastReplyAt),
    condition,
    connections: state?.connections ?? 0,
    limit: state?.limit ?? null,
    busySince: isoOrNull(state?.busySince ?? null),
    circuit: state?.circuit && {
      since: iso(state.circuit.since),
      failures: state.circuit.failures,
      nextProbeAt: iso(state.circuit.nextProbeAt),
      reason: state.circuit.reason,
    },
    suspension: suspension && {
      destination: suspension.destination,
      reason: suspension.reason,
      createdAt: iso(suspension.createdAt),
      until: iso(suspension.until),
    },
  };
}

function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}
