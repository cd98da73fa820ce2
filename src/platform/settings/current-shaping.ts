/**
 * The shaping rules while the server runs: those of the shaping file, which is read again when it changes, and above them
 * the operator's limits, which end by themselves (mail/queue/rows/destination-rules.ts). A file that has errors by then changes
 * nothing: the rules that were read last stay in force, and the errors are reported.
 */
import { statSync } from 'node:fs';
import type { DestinationOf } from '#platform/values/destination-shape.ts';
import { ConfigError } from './config-error.ts';
import { loadShaping } from './shaping-file.ts';
import { createDestinationOf, defaultShape } from './shaping-rules.ts';

export interface CurrentShaping {
  destinationOf: DestinationOf;
  /** Reads the file if it has changed. `limits`: mails per minute by destination. True if anything has changed. */
  refresh(limits: ReadonlyMap<string, number>): boolean;
  /** Another one than before: the file has changed. */
  fileStamp(): string | null;
}

export function createCurrentShaping(
  { shapingFile: path, mtaPerDestination }: { shapingFile: string | null; mtaPerDestination: number },
  onError: (what: string, error: unknown) => void,
): CurrentShaping {
  const read = () =>
    createDestinationOf(loadShaping(path, mtaPerDestination), defaultShape(mtaPerDestination));
  let stamp = stampOf(path);
  let byRules = read();
  let limits: ReadonlyMap<string, number> = new Map();

  function reread(): boolean {
    const now = stampOf(path);
    if (now === stamp) return false;
    stamp = now;
    try {
      byRules = read();
      return true;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      onError('the shaping file has changed but cannot be used; the rules from before stay in force', error);
      return false;
    }
  }

  return {
    destinationOf(domain, hosts) {
      const destination = byRules(domain, hosts);
      const limit = limits.get(destination.name);
      if (limit === undefined) return destination;
      const perMinute = Math.min(destination.shape.perMinute ?? limit, limit);
      return { ...destination, shape: { ...destination.shape, perMinute } };
    },
    refresh(now) {
      const isReread = reread();
      const hasSameLimits = isSame(limits, now);
      limits = now;
      return isReread || !hasSameLimits;
    },
    fileStamp: () => stampOf(path),
  };
}

function isSame(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...a].every(([name, limit]) => b.get(name) === limit);
}

/** Null: there is no file, or it cannot be read, which reading it will report. */
function stampOf(path: string | null): string | null {
  if (path === null) return null;
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : null;
}
