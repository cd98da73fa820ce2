/**
 * Whether mail can be taken now: the database answers and is in its place, the disk has space, we are not stopping. The
 * database is asked once a second at most, however often we are, and never while its last answer is still to come: so
 * nobody can keep it busy by asking.
 */
import { setTimeout as rest } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';

export interface HealthParts {
  /** Rejects where the database does not answer as it should. */
  ping(): Promise<unknown>;
  /** Why nothing can be written, if so. */
  obstacle(): string | null;
  clock: Clock;
}

export interface Health {
  /** Why mail cannot be taken; empty where it can. */
  reasons(): Promise<string[]>;
  /** From now on it cannot. */
  stop(): void;
}

const ttlMs = 1000;
/** Those who ask seldom wait for longer than a second. */
const timeoutMs = 800;

export function createHealth({ ping, obstacle, clock }: HealthParts): Health {
  let stopping = false;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let pinging: Promise<boolean> | null = null;
  let answer = Promise.resolve(true);

  async function databaseAnswers(): Promise<boolean> {
    pinging ??= ping()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        pinging = null;
      });
    return Promise.race([pinging, rest(timeoutMs, false)]);
  }

  return {
    async reasons() {
      if (stopping) return ['it is stopping'];
      // A clock that is set back must not make the last look hold for long.
      if (Math.abs(clock.now() - checkedAt) >= ttlMs) {
        checkedAt = clock.now();
        answer = databaseAnswers();
      }
      const reasons = (await answer) ? [] : ['the database does not answer'];
      return [...reasons, obstacle()].filter((fault) => fault !== null);
    },
    stop() {
      stopping = true;
    },
  };
}
