/**
 * Bounds how many sends are in progress, from the API key to the response, and the total size of their bodies: those
 * that are read, composed, signed or wait for their commit. So memory is bounded, however slow disk and CPU are. A send
 * that finds no slot waits for a moment and is then refused before any of its body is read.
 *
 * Bytes count when they arrive, not when a client announces them. An organization can hold as many slots and bytes as
 * are free beside its own: half of all if it is alone, a third if another does the same. The last part of the bytes is
 * reserved for small bodies.
 */
import type { Clock } from '../base/clock.ts';

/** A slot in use: call `add` when bytes of the body arrive, `release` when the response is ready. */
export interface Slot {
  /** Counts bytes. A promise means that they do not fit now; it resolves to false if they did not fit in time. */
  add(bytes: number): true | Promise<boolean>;
  release(): void;
}

export interface Admission {
  /** The number of sends that can have a slot at the same time. */
  maxSlots: number;
  /** `bytes` have arrived before. Resolves to null if no slot became free in time. */
  acquire(orgId: string, bytes: number): Promise<Slot | null>;
}

interface Holder {
  orgId: string;
  bytes: number;
  /** Increases with each holder. */
  number: number;
  hasSlot: boolean;
}

interface Waiting {
  holder: Holder;
  /** The bytes that it needs beside those that it holds. */
  bytes: number;
  end(isAdmitted: boolean): void;
}

/** A parsed and composed body takes about four times its size, so this bounds memory to 256 MiB. */
const maxBytes = 64 * 1024 * 1024;
/** Reserved for bodies of at most `smallBody` bytes, so that large bodies cannot block them. */
const smallBodyReserve = 8 * 1024 * 1024;
const smallBody = 64 * 1024;
/** Longer than a busy disk or a few large bodies take, shorter than the timeout of any client. */
const timeoutMs = 3000;

export function createAdmission(maxSlots: number, clock: Clock): Admission {
  const all = { slots: 0, bytes: 0 };
  const shares = new Map<string, typeof all>();
  /** Holders that wait for a slot, in order of arrival. */
  const queue = new Set<Waiting>();
  /** Holders of a slot whose half-read body does not fit now. */
  const halfRead = new Set<Waiting>();
  let number = 0;

  function fits(holder: Holder, bytes: number): boolean {
    const own = shares.get(holder.orgId) ?? { slots: 0, bytes: 0 };
    const hasSlot = holder.hasSlot || own.slots < maxSlots - all.slots;
    const isSmall = holder.bytes + bytes <= smallBody;
    const max = isSmall ? maxBytes : maxBytes - smallBodyReserve;
    return hasSlot && all.bytes + bytes <= max && (isSmall || own.bytes + bytes <= max - all.bytes);
  }

  function count(holder: Holder, slots: number, bytes: number): void {
    const own = shares.get(holder.orgId) ?? { slots: 0, bytes: 0 };
    for (const load of [all, own]) {
      load.slots += slots;
      load.bytes += bytes;
    }
    holder.bytes += bytes;
    if (own.slots > 0) shares.set(holder.orgId, own);
    else shares.delete(holder.orgId);
  }

  function take(holder: Holder, bytes: number): void {
    count(holder, holder.hasSlot ? 0 : 1, bytes);
    holder.hasSlot = true;
  }

  /** In order of arrival, except that nobody waits behind a body that is too large now. */
  function admitWaiting(): void {
    for (const one of [...halfRead].sort((a, b) => a.holder.number - b.holder.number)) admitIfItFits(one);
    for (const one of queue) {
      if (all.slots >= maxSlots) return;
      admitIfItFits(one);
    }
  }

  function admitIfItFits({ holder, bytes, end }: Waiting): void {
    if (isBehind(holder, bytes) || !fits(holder, bytes)) return;
    take(holder, bytes);
    end(true);
  }

  /** Half-read bodies of one organization that fill its share would all wait for each other, so the oldest goes first. */
  function isBehind(one: Holder, bytes: number): boolean {
    if (halfRead.size === 0 || !one.hasSlot || one.bytes + bytes <= smallBody) return false;
    return [...halfRead].some(({ holder }) => holder.orgId === one.orgId && holder.number < one.number);
  }

  function wait(holder: Holder, bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waitingList = holder.hasSlot ? halfRead : queue;
      const timeUp = () => {
        const youngest = holder.hasSlot ? youngestOf(holder.orgId) : waiting;
        youngest.end(false);
        if (youngest !== waiting) cancel = clock.after(timeoutMs, timeUp);
      };
      let cancel = clock.after(timeoutMs, timeUp);
      const waiting: Waiting = {
        holder,
        bytes,
        end(isAdmitted) {
          cancel();
          waitingList.delete(waiting);
          resolve(isAdmitted);
        },
      };
      waitingList.add(waiting);
    });
  }

  /** Of the organization's half-read bodies that wait, the youngest loses least when it is refused. */
  function youngestOf(orgId: string): Waiting {
    const own = [...halfRead].filter(({ holder }) => holder.orgId === orgId);
    return own.reduce((a, b) => (a.holder.number > b.holder.number ? a : b));
  }

  /** No more sends of an organization can wait than can have a slot. */
  function canQueue({ orgId }: Holder): boolean {
    const own = [...queue].filter(({ holder }) => holder.orgId === orgId).length;
    return queue.size < maxSlots && own < Math.ceil(maxSlots / 2);
  }

  function slotOf(holder: Holder): Slot {
    return {
      add(bytes) {
        if (isBehind(holder, bytes) || !fits(holder, bytes)) return wait(holder, bytes);
        take(holder, bytes);
        return true;
      },
      release() {
        for (const one of halfRead) if (one.holder === holder) one.end(false);
        count(holder, -1, -holder.bytes);
        admitWaiting();
      },
    };
  }

  return {
    maxSlots,
    async acquire(orgId, bytes) {
      number += 1;
      const holder = { orgId, number, bytes: 0, hasSlot: false };
      if (fits(holder, bytes)) take(holder, bytes);
      else if (!canQueue(holder) || !(await wait(holder, bytes))) return null;
      return slotOf(holder);
    },
  };
}
