/**
 * `postern top`: the service at work, on a screen that is drawn anew every two seconds; in a pipe, with --json or
 * --once one picture of it.
 *
 * What goes through is read off the mail log of this data directory, as it grows; what waits off the database. The log
 * costs the server nothing. The queue is looked at once for each picture, but at most a twenty-fifth of the time: of a
 * million mails, that is every half minute or so, and the screen says how old it is.
 */
import type { Command } from 'commander';
import { readDestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { summarizeQueue } from '../../db/queue/queue-view.ts';
import { mailLogFile } from '../../mail/mail-log.ts';
import { queueRows } from '../../operate/explain/queue-rows-by-destination.ts';
import { timeSpan } from '../args/arguments.ts';
import { type CommandContext, notServed } from '../command-context.ts';
import { type LogFile, openLog } from '../maillog/log-file.ts';
import { readLine } from '../maillog/log-filter.ts';
import { createTraffic, minutesKept, type Traffic } from '../maillog/traffic.ts';
import { openScreen } from '../render/screen.ts';
import { blocksOf, documentOf } from '../render/top-plain.ts';
import { type RenderOptions, render, type Snapshot, sorts } from '../render/top-view.ts';

interface Options {
  once?: boolean;
  every: number;
}

const defaultEvery = 2000;
const minEvery = 200;
/** The queue is not being looked at for so many times as long as the last look took. */
const restFactor = 24;
/** The last hour of the log, but no more than this of it. */
const maxBytes = 32 * 1024 * 1024;

export function topCommands(program: Command, context: CommandContext): void {
  program
    .command('top')
    .description('Watch mail rates, the queue by destination, slow destinations and the last replies live.')
    .option('--once', 'print one snapshot and exit, as in a pipe')
    .option('--every <2s>', 'time between two updates', timeSpan, defaultEvery)
    .action((options: Options) => top(context, options));
}

async function top(context: CommandContext, options: Options): Promise<void> {
  const { out } = context;
  const view = await createView(context);
  if (out.json || options.once || !out.terminal) {
    await view.look();
    await view.settled();
    const snapshot = view.snapshot();
    if (snapshot.problem !== null) throw new Error(snapshot.problem);
    if (!snapshot.isServed) out.warn(notServed);
    out.print(documentOf(snapshot), ...blocksOf(snapshot));
  } else await watch(view, Math.max(options.every, minEvery));
  await view.close();
}

interface View {
  /** Reads what is new of the log, and begins to look at the queue where its time has come. */
  look(): Promise<void>;
  /** Waits for the queue. */
  settled(): Promise<void>;
  snapshot(): Snapshot;
  close(): Promise<void>;
}

async function createView(context: CommandContext): Promise<View> {
  const { now } = context;
  const { hostname, dataDir } = context.config();
  const db = await context.db();
  const log = await openLog(mailLogFile(dataDir));
  const traffic = createTraffic();
  await readPast(log, traffic, now() - minutesKept * 60_000);
  let queue: Snapshot['queue'] = { lines: [], at: 0 };
  let isServed = true;
  let nextLookAt = 0;
  let looking: Promise<void> | null = null;
  let problem: string | null = null;

  async function lookAtQueue(): Promise<void> {
    const at = now();
    const begun = performance.now();
    try {
      const queues = await summarizeQueue(db, { now: at, bounds: [] });
      queue = { lines: queueRows(queues, await readDestinationStatuses(db, at, isServed), false, at), at };
      problem = null;
    } catch (error) {
      problem = `the queue cannot be read: ${(error as Error).message.split(' - ').at(-1)}`;
    }
    nextLookAt = now() + restFactor * (performance.now() - begun);
    looking = null;
  }

  return {
    async look() {
      isServed = await context.isServed().catch(() => isServed);
      for await (const lines of log.added()) for (const line of lines) addLine(traffic, line);
      if (now() >= nextLookAt) looking ??= lookAtQueue();
    },
    async settled() {
      await looking;
    },
    snapshot: () => ({ at: now(), hostname, queue, isServed, problem, ...traffic.read(now()) }),
    close: log.close,
  };
}

function addLine(traffic: Traffic, text: string): number | null {
  const line = readLine(text);
  if (!line) return null;
  traffic.add(line);
  return Date.parse(line.time);
}

/** From the end back, until it has all, or enough. */
async function readPast(log: LogFile, traffic: Traffic, since: number): Promise<void> {
  let bytes = 0;
  let oldest = Number.POSITIVE_INFINITY;
  for await (const lines of log.backward(() => true, since)) {
    for (const text of lines) {
      bytes += text.length;
      oldest = Math.min(oldest, addLine(traffic, text) ?? oldest);
    }
    if (oldest < since) break;
    if (bytes > maxBytes) return traffic.knownSince(oldest);
  }
  traffic.knownSince(since);
}

/** Until q or Ctrl-C is pressed, or the process is asked to end. */
async function watch(view: View, intervalMs: number): Promise<void> {
  const manner: RenderOptions = { sort: sorts[0], isPaused: false };
  let isOver = false;
  let wake = () => {};
  const end = () => {
    isOver = true;
    screen.close();
    wake();
  };
  let snapshot = view.snapshot();
  const keys: Record<string, () => void> = {
    q: end,
    '\x03': end,
    p: () => {
      manner.isPaused = !manner.isPaused;
    },
    s: () => {
      manner.sort = sorts[(sorts.indexOf(manner.sort) + 1) % sorts.length]!;
    },
  };
  const draw = () => screen.draw(render(snapshot, screen.size(), manner));
  const screen = openScreen(process.stdin, process.stdout, {
    onKey(key) {
      keys[key]?.();
      if (!isOver) draw();
    },
    onResize: draw,
    onEnd: end,
  });
  try {
    // The first picture is a whole one.
    await view.look();
    await view.settled();
    while (!isOver) {
      if (!manner.isPaused) {
        await view.look();
        snapshot = view.snapshot();
      }
      draw();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, intervalMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (isOver) wake();
      });
    }
  } finally {
    screen.close();
  }
}
