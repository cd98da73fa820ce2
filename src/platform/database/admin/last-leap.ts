/** When this server last saw the clock leap forward: a small file in the data directory, for `postern status`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Leap {
  /** By the clock afterwards. */
  at: number;
  byMs: number;
}

const fileIn = (dataDir: string) => join(dataDir, 'last-leap');

/** The log has it too, so a failure to write is no matter. */
export function noteLeapIn(dataDir: string, leap: Leap): void {
  try {
    writeFileSync(fileIn(dataDir), `${JSON.stringify(leap)}\n`, { mode: 0o600 });
  } catch {}
}

/** Null if there was none, or the file cannot be read. */
export function readLastLeap(dataDir: string): Leap | null {
  try {
    const { at, byMs } = JSON.parse(readFileSync(fileIn(dataDir), 'utf8'));
    return typeof at === 'number' && typeof byMs === 'number' ? { at, byMs } : null;
  } catch {
    return null;
  }
}
