/**
 * Takes over the terminal: alternate screen, no cursor, raw keys; `close` restores it. To avoid flicker, a frame is one
 * write of the rows that changed, within a synchronized update (mode 2026) if the terminal supports it.
 */
import type { ReadStream, WriteStream } from 'node:tty';

export interface Screen {
  size(): { columns: number; rows: number };
  draw(lines: string[]): void;
  close(): void;
}

export interface ScreenHandlers {
  /** A key: a letter, or an escape sequence. */
  onKey(key: string): void;
  onResize(): void;
}

const csi = '\x1b[';
const enter = `${csi}?1049h${csi}?25l${csi}?7l${csi}2J`;
const leave = `${csi}?7h${csi}?25h${csi}?1049l`;
const [beginFrame, endFrame] = [`${csi}?2026h`, `${csi}?2026l`];

export function openScreen(stdin: ReadStream, stdout: WriteStream, handlers: ScreenHandlers): Screen {
  let shown: string[] = [];
  let isOpen = true;
  const size = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 });

  const resized = () => {
    shown = [];
    stdout.write(`${csi}2J`);
    handlers.onResize();
  };
  const pressed = (bytes: Buffer) => handlers.onKey(bytes.toString());

  function draw(lines: string[]): void {
    if (!isOpen) return;
    const rows = lines.slice(0, size().rows);
    // A row is erased before it is written: after a full row the cursor stays on its last letter, which would be erased.
    const changes = rows.map((line, at) =>
      line === shown[at] ? '' : `${csi}${at + 1};1H${csi}0m${csi}2K${line}`,
    );
    const below = rows.length < shown.length ? `${csi}${rows.length + 1};1H${csi}J` : '';
    shown = rows;
    const frame = changes.join('') + below;
    if (frame !== '') stdout.write(beginFrame + frame + endFrame);
  }

  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    stdout.off('resize', resized);
    if (stdin.isTTY) {
      stdin.off('data', pressed);
      stdin.setRawMode(false);
      stdin.pause();
    }
    stdout.write(leave);
  }

  stdout.on('resize', resized);
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on('data', pressed);
  }
  stdout.write(enter);
  return { size, draw, close };
}
