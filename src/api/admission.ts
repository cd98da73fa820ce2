/**
 * How many sends are taken at once, counted from the key to the answer, and how large their bodies are together:
 * what is being read, composed, signed or waits for its commit is all in here, so memory is bounded whatever the
 * disk or the CPU can do. One more waits a moment; then there is no place for it, and nothing of it has been read.
 *
 * Counted is what has arrived, not what a client announces. An organization may hold as many places, and as many bytes,
 * as are free beside its own: alone half of all, the second a third or less, and whoever comes next finds half of the
 * rest. The last part of the bytes is kept for small bodies.
 */
import type { Clock } from '../base/clock.ts';

/** A place that was given: `add` when bytes of the body have arrived, `leave` when the answer is there. */
export interface Slot {
  /** Counts bytes. A promise: they do not fit now; false, because they did not fit in time. */
  add(bytes: number): true | Promise<boolean>;
  release(): void;
}

export interface Admission {
  /** As many sends have a place. */
  maxSlots: number;
  /** `bytes`: what has arrived before. Null: no place came free in time. */
  acquire(orgId: string, bytes: number): Promise<Slot | null>;
}

interface Holder {
  orgId: string;
  bytes: number;
  /** Rises with each guest. */
  number: number;
  hasSlot: boolean;
}

interface Waiting {
  holder: Holder;
  /** That it wants to hold beside what it has. */
  bytes: number;
  end(isAdmitted: boolean): void;
}

/** Parsed and composed a body takes about four times its size, so this is 256 MiB at the very worst. */
const maxBytes = 64 * 1024 * 1024;
/** Kept for bodies of `smallBody` at most, so that no large ones shut them out. */
const smallBodyReserve = 8 * 1024 * 1024;
const smallBody = 64 * 1024;
/** Longer than a busy disk or a few large bodies take, shorter than any caller's patience. */
const timeoutMs = 3000;

export function createAdmission(maxSlots: number, clock: Clock): Admission {
  const all = { slots: 0, bytes: 0 };
  const shares = new Map<string, typeof all>();
  /** Those that wait for a place, in the order of arrival. */
  const queue = new Set<Waiting>();
  /** Those that have a place, and a body half read that does not fit now. */
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

  /** In the order of arrival, but nobody waits behind one that is too large now. */
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

  /** Bodies of one organization that fill its share half read would all wait for each other: the oldest goes first. */
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

  /** It has the least to lose of those that wait with a body half read. */
  function youngestOf(orgId: string): Waiting {
    const own = [...halfRead].filter(({ holder }) => holder.orgId === orgId);
    return own.reduce((a, b) => (a.holder.number > b.holder.number ? a : b));
  }

  /** Of one organization no more wait than may have a place. */
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
