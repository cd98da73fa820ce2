/**
 * Commands that show the same again and again: on a terminal on a screen of their own until q, Ctrl-C or a signal, which restores
 * the terminal; with --json a line each time; in a pipe as the command prints it once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandContext } from '#cli/command-context.ts';
import { openScreen } from './screen.ts';
import type { Size } from './status-view.ts';

export interface Watched {
  /** Reads what is shown next. */
  update(): Promise<void>;
  lines(size: Size): string[];
  document(): unknown;
  /** In a pipe, without --json. */
  print?(): void;
  /** What a key does, besides q and Ctrl-C. */
  keys?: Record<string, () => void>;
}

export async function watch(
  { out, process, abortOn }: CommandContext,
  watched: Watched,
  intervalMs: number,
): Promise<void> {
  const ended = new AbortController();
  const end = () => {
    screen?.close();
    ended.abort();
  };
  const keys: Record<string, () => void> = { ...watched.keys, q: end, '\x03': end };
  const draw = () => screen?.draw(watched.lines(screen.size()));
  const onKey = (key: string) => {
    keys[key]?.();
    draw();
  };
  await watched.update();
  const isDrawn = out.terminal && !out.json;
  const screen = isDrawn ? openScreen(process.stdin, process.stdout, { onKey, onResize: draw }) : null;
  abortOn('SIGTERM', 'SIGHUP', 'SIGINT').onabort = end;
  try {
    while (!ended.signal.aborted) {
      if (screen) draw();
      else if (out.json) out.write(`${JSON.stringify(watched.document())}\n`);
      else watched.print?.();
      await sleep(intervalMs, undefined, { signal: ended.signal }).catch(() => {});
      if (!ended.signal.aborted) await watched.update();
    }
  } finally {
    screen?.close();
  }
}
