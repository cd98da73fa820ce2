/**
 * When keys were last used, to the minute: noted in memory with each call and written together, one statement a minute, so
 * that no call waits for it or costs one more. A process that is killed loses a minute of it, which nobody misses.
 */
import type { Clock } from '../base/clock.ts';
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
        .catch((error) => onError('when keys were used last could not be written', error));
    return writing;
  }

  return {
    noted: (find: (key: string) => Promise<Caller | null>) => async (key: string) => {
      const caller = await find(key);
      if (caller) {
        if (recording.size === 0) cancel = clock.after(intervalMs, () => void flush());
        recording.set(caller.keyId, clock.now());
      }
      return caller;
    },
    /** When nobody calls any more. */
    settled: flush,
  };
}
