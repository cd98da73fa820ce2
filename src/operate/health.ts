/**
 * Whether this node can accept mail: the database answers and is in its place, the disk has space, and the node is not
 * stopping. The database is pinged at most once a second, and never while a ping is in progress, so that health checks
 * cannot keep it busy.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, isRecent } from '#platform/base/clock.ts';

export interface HealthParts {
  /** Rejects if the database does not answer. */
  ping(): Promise<unknown>;
  /** Why mail is refused (server/disk-guard.ts); null if it is accepted. */
  obstacle(): string | null;
  clock: Clock;
}

export type Health = ReturnType<typeof createHealth>;

const ttlMs = 1000;
/** Health checks often time out after one second. */
const timeoutMs = 800;

export function createHealth({ ping, obstacle, clock }: HealthParts) {
  let stopping = false;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let pinging: Promise<boolean> | null = null;
  let answer = Promise.resolve(true);

  async function databaseAnswers(): Promise<boolean> {
    pinging ??= ping()
      .then(() => true)
      .catch(() => false)
      .finally(() => {
        pinging = null;
      });
    return Promise.race([pinging, sleep(timeoutMs, false)]);
  }

  return {
    /** Why mail cannot be accepted; empty if it can. */
    async reasons(): Promise<string[]> {
      if (stopping) return ['it is stopping'];
      if (!isRecent(checkedAt, clock.now(), ttlMs)) {
        checkedAt = clock.now();
        answer = databaseAnswers();
      }
      const reasons = (await answer) ? [] : ['the database does not answer'];
      return [...reasons, obstacle()].filter((reason) => reason !== null);
    },
    /** Reports that the node is stopping from now on. */
    stop(): void {
      stopping = true;
    },
  };
}
