/** `postern queue trace`: the SMTP transcript of each attempt at one destination, as soon as the attempt ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { destination, lines } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { attemptDocument, attemptLines, attemptRows } from '#cli/render/email-view.ts';
import { listAttemptsWhere, type TracedAttempt } from '#mail/record/rows/attempts-at.ts';
import { sanitizeJson } from '#platform/base/sanitize.ts';
import { createCurrentShaping } from '#platform/settings/current-shaping.ts';

const pollMs = 500;
/** Attempts of several nodes are committed in another order than that of their ids. */
const overlapMs = 15_000;
const maxLast = 1000;

export function traceCommand(queue: Command, context: CommandContext): void {
  queue
    .command('trace')
    .description('Show the SMTP transcript of each attempt at a destination as it ends, until Ctrl-C.')
    .argument('<DESTINATION>', 'a recipient domain, or a destination of `queue summary`', destination)
    .option('--last <N>', 'begin with the last N attempts of the past hour', lines(0, maxLast), 0)
    .option('--once', 'end after these')
    .action((name: string, options: { last: number; once?: true }) => trace(context, name, options));
}

const pastMs = 60 * 60_000;

async function trace(
  context: CommandContext,
  name: string,
  { last, once }: { last: number; once?: true },
): Promise<void> {
  const { out, now } = context;
  const db = await context.db();
  const end = context.abortOn();
  /** Keyed by id, with the time of the attempt. */
  const isWanted = attemptsAt(context, name);
  const seen = new Map<string, number>();
  const startedAt = now();
  const past = await listAttemptsWhere(db, startedAt - (last > 0 ? pastMs : overlapMs), isWanted);
  for (const { id, attempt } of past) seen.set(id, attempt.endedAt);
  for (const each of last > 0 ? past.slice(-last) : []) print(context, each);
  if (once) return;
  if (past.length === 0) out.note(`waiting for attempts at ${name}; Ctrl-C ends`);
  while (!end.aborted) {
    for (const traced of await listAttemptsWhere(db, now() - overlapMs, isWanted)) {
      if (seen.has(traced.id)) continue;
      seen.set(traced.id, traced.attempt.endedAt);
      print(context, traced);
    }
    for (const [id, at] of seen) if (at < now() - 2 * overlapMs) seen.delete(id);
    await sleep(pollMs, undefined, { signal: end }).catch(() => {});
  }
}

/** A domain, one of the hosts that are the name of the destination, or a host that a shaping rule gives this name. */
function attemptsAt({ config }: CommandContext, name: string) {
  const hosts = new Set(name.split(','));
  const { destinationOf } = createCurrentShaping(config(), () => {});
  return (domain: string, host: string | null) =>
    domain === name || (host !== null && (hosts.has(host) || destinationOf(domain, [host]).name === name));
}

/** With --json one document per line, because the output has no end. */
function print({ out }: CommandContext, { emailId, recipient, attempt }: TracedAttempt): void {
  if (out.json) {
    out.write(`${sanitizeJson(JSON.stringify({ emailId, recipient, ...attemptDocument(attempt) }))}\n`);
    return;
  }
  out.print(null, {
    lines: [...attemptLines({ recipient }, attempt, out.columns), ''],
    rows: attemptRows({ recipient }, attempt),
  });
}
