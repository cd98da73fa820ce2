/**
 * Limits the memory of messages that are being received or decided on, in total and per client. A message counts with the
 * bytes that have arrived, not with the size that its client announced. If no memory becomes free in time, the message is
 * refused and its memory released, so that half-received messages cannot wait for each other. One eighth of the memory is
 * reserved for small messages: a bounce still gets in, however many large messages arrive slowly.
 */
import { clientNetwork } from '../base/client-network.ts';

interface Waiting {
  client: string;
  /** Additional bytes. */
  bytes: number;
  /** Bytes of the whole message with them. */
  total: number;
  settle(isGranted: boolean): void;
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

export function createMemoryBudget({ max, perClient, timeoutMs = defaultTimeoutMs }: IntakeBounds) {
  const shares = new Map<string, number>();
  const queue = new Set<Waiting>();
  let used = 0;

  function take({ client, bytes, total }: Omit<Waiting, 'settle'>): boolean {
    const own = shares.get(client) ?? 0;
    const limit = total > smallMessage ? max - max / 8 : max;
    if (used + bytes > limit || own + bytes > perClient) return false;
    add(client, bytes);
    return true;
  }

  function add(client: string, bytes: number): void {
    const own = (shares.get(client) ?? 0) + bytes;
    used += bytes;
    if (own > 0) shares.set(client, own);
    else shares.delete(client);
  }

  function wait(wanted: Omit<Waiting, 'settle'>): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        ...wanted,
        settle(isGranted) {
          clearTimeout(timer);
          queue.delete(waiting);
          resolve(isGranted);
        },
      };
      const timer = setTimeout(() => waiting.settle(false), timeoutMs);
      queue.add(waiting);
    });
  }

  return {
    open(address: string) {
      const client = clientNetwork(address);
      let held = 0;
      return {
        /** Grows the hold to `bytes`; false if the memory did not become free in time. */
        async growTo(bytes: number): Promise<boolean> {
          const wanted = { client, bytes: bytes - held, total: bytes };
          if (wanted.bytes > 0 && !take(wanted) && !(await wait(wanted))) return false;
          held = Math.max(held, bytes);
          return true;
        },
        release(): void {
          add(client, -held);
          held = 0;
          for (const one of queue) if (take(one)) one.settle(true);
        },
      };
    },
  };
}

export type MemoryBudget = ReturnType<typeof createMemoryBudget>;
export type MemoryHold = ReturnType<MemoryBudget['open']>;
