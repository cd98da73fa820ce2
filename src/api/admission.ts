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
  leave(): void;
}

export interface Admission {
  /** As many sends have a place. */
  places: number;
  /** `bytes`: what has arrived before. Null: no place came free in time. */
  enter(orgId: string, bytes: number): Promise<Slot | null>;
}

interface Guest {
  orgId: string;
  bytes: number;
  /** Rises with each guest. */
  number: number;
  hasPlace: boolean;
}

interface Waiting {
  guest: Guest;
  /** That it wants to hold beside what it has. */
  bytes: number;
  end(isGiven: boolean): void;
}

/** Parsed and composed a body takes about four times its size, so this is 256 MiB at the very worst. */
const maxBytes = 64 * 1024 * 1024;
/** Kept for bodies of `smallBody` at most, so that no large ones shut them out. */
const reserve = 8 * 1024 * 1024;
const smallBody = 64 * 1024;
/** Longer than a busy disk or a few large bodies take, shorter than any caller's patience. */
const timeoutMs = 3000;

export function createAdmission(places: number, clock: Clock): Admission {
  const all = { guests: 0, bytes: 0 };
  const shares = new Map<string, typeof all>();
  /** Those that wait for a place, in the order of arrival. */
  const line = new Set<Waiting>();
  /** Those that have a place, and a body half read that does not fit now. */
  const halfRead = new Set<Waiting>();
  let number = 0;

  function fits(guest: Guest, bytes: number): boolean {
    const own = shares.get(guest.orgId) ?? { guests: 0, bytes: 0 };
    const hasPlace = guest.hasPlace || own.guests < places - all.guests;
    const isSmall = guest.bytes + bytes <= smallBody;
    const max = isSmall ? maxBytes : maxBytes - reserve;
    return hasPlace && all.bytes + bytes <= max && (isSmall || own.bytes + bytes <= max - all.bytes);
  }

  function count(guest: Guest, guests: number, bytes: number): void {
    const own = shares.get(guest.orgId) ?? { guests: 0, bytes: 0 };
    for (const load of [all, own]) {
      load.guests += guests;
      load.bytes += bytes;
    }
    guest.bytes += bytes;
    if (own.guests > 0) shares.set(guest.orgId, own);
    else shares.delete(guest.orgId);
  }

  function give(guest: Guest, bytes: number): void {
    count(guest, guest.hasPlace ? 0 : 1, bytes);
    guest.hasPlace = true;
  }

  /** In the order of arrival, but nobody waits behind one that is too large now. */
  function callNext(): void {
    for (const one of [...halfRead].sort((a, b) => a.guest.number - b.guest.number)) callIfFits(one);
    for (const one of line) {
      if (all.guests >= places) return;
      callIfFits(one);
    }
  }

  function callIfFits({ guest, bytes, end }: Waiting): void {
    if (isBehind(guest, bytes) || !fits(guest, bytes)) return;
    give(guest, bytes);
    end(true);
  }

  /** Bodies of one organization that fill its share half read would all wait for each other: the oldest goes first. */
  function isBehind(one: Guest, bytes: number): boolean {
    if (halfRead.size === 0 || !one.hasPlace || one.bytes + bytes <= smallBody) return false;
    return [...halfRead].some(({ guest }) => guest.orgId === one.orgId && guest.number < one.number);
  }

  function wait(guest: Guest, bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const queue = guest.hasPlace ? halfRead : line;
      const timeUp = () => {
        const youngest = guest.hasPlace ? youngestOf(guest.orgId) : waiting;
        youngest.end(false);
        if (youngest !== waiting) cancel = clock.after(timeoutMs, timeUp);
      };
      let cancel = clock.after(timeoutMs, timeUp);
      const waiting: Waiting = {
        guest,
        bytes,
        end(isGiven) {
          cancel();
          queue.delete(waiting);
          resolve(isGiven);
        },
      };
      queue.add(waiting);
    });
  }

  /** It has the least to lose of those that wait with a body half read. */
  function youngestOf(orgId: string): Waiting {
    const own = [...halfRead].filter(({ guest }) => guest.orgId === orgId);
    return own.reduce((a, b) => (a.guest.number > b.guest.number ? a : b));
  }

  /** Of one organization no more wait than may have a place. */
  function mayWait({ orgId }: Guest): boolean {
    const own = [...line].filter(({ guest }) => guest.orgId === orgId).length;
    return line.size < places && own < Math.ceil(places / 2);
  }

  function placeOf(guest: Guest): Slot {
    return {
      add(bytes) {
        if (isBehind(guest, bytes) || !fits(guest, bytes)) return wait(guest, bytes);
        give(guest, bytes);
        return true;
      },
      leave() {
        for (const one of halfRead) if (one.guest === guest) one.end(false);
        count(guest, -1, -guest.bytes);
        callNext();
      },
    };
  }

  return {
    places,
    async enter(orgId, bytes) {
      number += 1;
      const guest = { orgId, number, bytes: 0, hasPlace: false };
      if (fits(guest, bytes)) give(guest, bytes);
      else if (!mayWait(guest) || !(await wait(guest, bytes))) return null;
      return placeOf(guest);
    },
  };
}
