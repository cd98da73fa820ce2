/**
 * Records when API keys were last used, to the minute: collected in memory and written in one statement per minute, so that no
 * request waits for it. A killed process loses at most one minute of it.
 */
import type { Clock } from '#platform/base/clock.ts';
import type { Caller } from './api-keys.ts';

export interface KeyUse {
  id: string;
  at: number;
}

const intervalMs = 60_000;

export function createKeyUseLog(
  write: (uses: KeyUse[]) => Promise<void>,
  clock: Clock,
  onError: (what: string, error: unknown) => void,
) {
  let recording = new Map<string, number>();
  let cancel = () => {};
  let writing = Promise.resolve();

  function flush(): Promise<void> {
    cancel();
    const uses = [...recording].map(([id, at]) => ({ id, at }));
    recording = new Map();
    if (uses.length > 0)
      writing = writing
        .then(() => write(uses))
        .catch((error) => onError('the last use of API keys could not be written', error));
    return writing;
  }

  return {
    /** Wraps the look-up of callers, so that each use of a key is recorded. */
    recordUses: (find: (key: string) => Promise<Caller | null>) => async (key: string) => {
      const caller = await find(key);
      if (caller) {
        if (recording.size === 0) cancel = clock.after(intervalMs, () => void flush());
        recording.set(caller.keyId, clock.now());
      }
      return caller;
    },
    /** Writes the uses that are not written yet; called after the last request. */
    flush,
  };
}
