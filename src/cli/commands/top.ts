/**
 * `postern top`: the status, the rates and the queue, on a screen that is redrawn every two seconds. In a pipe, with --json and
 * with --once it is one snapshot; with --json and --every, a line each time.
 *
 * Rates come from the mail log of this data directory as it grows, which costs the server nothing; the rest comes from the
 * database. It is read at most once for each frame, and for at most a twenty-fifth of the time: with a million mails that is
 * about every 30 s. The screen shows the age of the result.
 */
import type { Command } from 'commander';
import { spanOption } from '#cli/args/arguments.ts';
import { type CommandContext, notServed } from '#cli/command-context.ts';
import { openLog } from '#cli/maillog/log-file.ts';
import { readLine } from '#cli/maillog/log-filter.ts';
import { countedMs, Traffic } from '#cli/maillog/traffic.ts';
import { render, type Snapshot, sorts, topBlocks, topDocument } from '#cli/render/top-view.ts';
import { type Watched, watch } from '#cli/render/watching.ts';
import { readSummary } from '#operate/explain/queue-rows-by-destination.ts';
import { readStatus, type Status } from '#operate/status/read-status.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

interface Options {
  once?: boolean;
  every?: number;
}

const defaultInterval = 2_000;
const minInterval = 200;
/** The pause between two reads of the queue, as a multiple of the duration of the first. */
const pauseFactor = 24;

export function topCommands(program: Command, context: CommandContext): void {
  program
    .command('top')
    .description('Watch the status, mail rates and the queue by destination live.')
    .option('--once', 'print one snapshot and exit, as in a pipe and with --json')
    .addOption(
      spanOption(
        '--every <TIME>',
        'time between two updates, by default 2s; with --json, a line is printed each time',
      ),
    )
    .action((options: Options) => top(context, options));
}

async function top(context: CommandContext, options: Options): Promise<void> {
  const { out } = context;
  const monitor = await createMonitor(context);
  try {
    // The first snapshot has all of it.
    await monitor.update();
    await monitor.databaseRead();
    const snapshot = monitor.snapshot();
    const isOnce = options.once || (out.json ? options.every === undefined : !out.terminal);
    // A screen shows both, and goes on.
    const isDrawn = !isOnce && !out.json;
    if (snapshot.problem !== null && !isDrawn) throw new Error(snapshot.problem);
    if (!snapshot.isServed && !isDrawn) out.warn(notServed);
    const { every = defaultInterval } = options;
    if (!isOnce) return await watch(context, watchedBy(monitor, snapshot), Math.max(every, minInterval));
    out.print(topDocument(snapshot), ...topBlocks(snapshot, out.columns));
  } finally {
    await monitor.close();
  }
}

type Monitor = Awaited<ReturnType<typeof createMonitor>>;

function watchedBy(monitor: Monitor, first: Snapshot): Watched {
  const options = { sort: sorts[0], isPaused: false };
  let snapshot = first;
  return {
    async update() {
      if (options.isPaused) return;
      await monitor.update();
      snapshot = monitor.snapshot();
    },
    lines: (size) => render(snapshot, size, options),
    document: () => topDocument(snapshot),
    keys: {
      p() {
        options.isPaused = !options.isPaused;
      },
      s() {
        options.sort = sorts[(sorts.indexOf(options.sort) + 1) % sorts.length]!;
      },
    },
  };
}

async function createMonitor(context: CommandContext) {
  const { now } = context;
  const { hostname, dataDir } = context.config();
  const db = await context.db();
  const log = await openLog(mailLogFile(dataDir));
  const traffic = new Traffic();
  let queue: Snapshot['queue'] = { rows: [], at: 0 };
  let status: Status | null = null;
  let isServed = true;
  let nextReadAt = 0;
  let reading: Promise<void> | null = null;
  let problem: string | null = null;

  /** A frame shows what of it has been read. */
  async function readDatabase(): Promise<void> {
    const begun = performance.now();
    try {
      status = await readStatus({ db, config: context.config(), now: now(), served: isServed });
      const at = now();
      queue = { rows: await readSummary(db, { now: at, served: isServed }), at };
      problem = null;
    } catch (error) {
      problem = `the database cannot be read: ${(error as Error).message.split(' - ').at(-1)}`;
    }
    nextReadAt = now() + pauseFactor * (performance.now() - begun);
    reading = null;
  }

  function addLines(lines: string[]): void {
    for (const text of lines) {
      const line = readLine(text);
      if (line) traffic.add(line);
    }
  }

  const since = now() - countedMs;
  for await (const lines of log.backward(() => true, since)) {
    addLines(lines);
    const [first = ''] = lines;
    if (Date.parse(readLine(first)?.time ?? '') < since) break;
  }

  return {
    /** Reads the new lines of the log, and starts to read the database if it is time. */
    async update(): Promise<void> {
      isServed = await context.isServed().catch(() => isServed);
      for await (const lines of log.added()) addLines(lines);
      if (now() >= nextReadAt) reading ??= readDatabase();
    },
    /** Waits until the database has been read. */
    async databaseRead(): Promise<void> {
      await reading;
    },
    snapshot: (): Snapshot => ({
      at: now(),
      hostname,
      status,
      rates: traffic.read(now()),
      queue,
      isServed,
      problem,
    }),
    close: () => log.close(),
  };
}
