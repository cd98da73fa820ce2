/**
 * The memory that messages take up while they come in and are decided on: bounded in all, and for one client by half
 * of it. A message holds more as it grows; one for which nothing comes free in time is refused, and what it held is
 * given back, so that many that have begun cannot wait for each other.
 */
import { clientOf } from './crowd.ts';

export interface Hold {
  /** False: there is no room for so many bytes. */
  reach(bytes: number): Promise<boolean>;
  release(): void;
}

export interface Intake {
  open(address: string): Hold;
}

interface Waiting {
  client: string;
  bytes: number;
  come(isIn: boolean): void;
}

const patienceMs = 5000;

export function createIntake(most: number, patience = patienceMs): Intake {
  const shares = new Map<string, number>();
  const line = new Set<Waiting>();
  let all = 0;

  function take(client: string, bytes: number): boolean {
    const own = shares.get(client) ?? 0;
    if (all + bytes > most || own + bytes > most / 2) return false;
    add(client, bytes);
    return true;
  }

  function add(client: string, bytes: number): void {
    const own = (shares.get(client) ?? 0) + bytes;
    all += bytes;
    if (own > 0) shares.set(client, own);
    else shares.delete(client);
  }

  function wait(client: string, bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        client,
        bytes,
        come(isIn) {
          clearTimeout(timer);
          line.delete(waiting);
          resolve(isIn);
        },
      };
      const timer = setTimeout(() => waiting.come(false), patience);
      line.add(waiting);
    });
  }

  return {
    open(address) {
      const client = clientOf(address);
      let held = 0;
      return {
        async reach(bytes) {
          const more = bytes - held;
          if (more > 0 && !take(client, more) && !(await wait(client, more))) return false;
          held = Math.max(held, bytes);
          return true;
        },
        release() {
          add(client, -held);
          held = 0;
          for (const one of line) if (take(one.client, one.bytes)) one.come(true);
        },
      };
    },
  };
}
