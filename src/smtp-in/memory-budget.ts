/**
 * The memory that messages take up while they come in and are decided on: bounded in all and for each client. A message
 * holds what has been read of it, not what its client announces; one for which nothing comes free in time is refused,
 * and what it held is given back, so that many that have begun cannot wait for each other. An eighth of the memory is
 * kept for small messages: however many large ones come in slowly, a bounce still gets in.
 */
import { clientOf } from './connection-limits.ts';

export interface MemoryHold {
  /** False: there is no room for so many bytes. */
  reach(bytes: number): Promise<boolean>;
  release(): void;
}

export interface MemoryBudget {
  open(address: string): MemoryHold;
}

interface Waiting {
  client: string;
  /** Those that it asks for now, and those of its whole message with them. */
  bytes: number;
  total: number;
  come(isIn: boolean): void;
}

export interface IntakeBounds {
  /** Bytes of all messages. */
  max: number;
  /** Bytes of one client's messages. */
  perClient: number;
  /** How long a message waits for memory. */
  timeoutMs?: number;
}

const defaultTimeoutMs = 5000;
const smallMessage = 64 * 1024;

export function createMemoryBudget({
  max,
  perClient,
  timeoutMs = defaultTimeoutMs,
}: IntakeBounds): MemoryBudget {
  const shares = new Map<string, number>();
  const line = new Set<Waiting>();
  let all = 0;

  function take({ client, bytes, total }: Omit<Waiting, 'come'>): boolean {
    const own = shares.get(client) ?? 0;
    const limit = total > smallMessage ? max - max / 8 : max;
    if (all + bytes > limit || own + bytes > perClient) return false;
    add(client, bytes);
    return true;
  }

  function add(client: string, bytes: number): void {
    const own = (shares.get(client) ?? 0) + bytes;
    all += bytes;
    if (own > 0) shares.set(client, own);
    else shares.delete(client);
  }

  function wait(wanted: Omit<Waiting, 'come'>): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        ...wanted,
        come(isIn) {
          clearTimeout(timer);
          line.delete(waiting);
          resolve(isIn);
        },
      };
      const timer = setTimeout(() => waiting.come(false), timeoutMs);
      line.add(waiting);
    });
  }

  return {
    open(address) {
      const client = clientOf(address);
      let held = 0;
      return {
        async reach(bytes) {
          const wanted = { client, bytes: bytes - held, total: bytes };
          if (wanted.bytes > 0 && !take(wanted) && !(await wait(wanted))) return false;
          held = Math.max(held, bytes);
          return true;
        },
        release() {
          add(client, -held);
          held = 0;
          for (const one of line) if (take(one)) one.come(true);
        },
      };
    },
  };
}
