/**
 * How many sends are taken at once, counted from the key to the answer, and how large their bodies are together:
 * what is being read, composed, signed or waits for its commit is all in here, so memory is bounded whatever the
 * disk or the CPU can do. One more waits a moment; then there is no place for it, and nothing of it has been read.
 *
 * One organization has half of the places and of the bytes at most, so that no one's slow clients shut out others.
 */
import type { Clock } from '../clock.ts';

/** A place that was given: `resize` when the body's true size is known, `leave` when the answer is. */
export interface Place {
  resize(bytes: number): void;
  leave(): void;
}

export interface Room {
  /** As many sends have a place. */
  places: number;
  /** Null: no place came free in time. */
  enter(orgId: string, bytes: number): Promise<Place | null>;
}

interface Guest {
  orgId: string;
  bytes: number;
}

interface Waiting {
  guest: Guest;
  come(place: Place | null): void;
}

/** Parsed and composed a body takes about four times its size, so this is 256 MiB at the very worst. */
const mostBytes = 64 * 1024 * 1024;
/** Longer than a busy disk or a few large bodies take, shorter than any caller's patience. */
const patienceMs = 3000;

export function createRoom(places: number, clock: Clock): Room {
  const all = { guests: 0, bytes: 0 };
  const shares = new Map<string, typeof all>();
  const line = new Set<Waiting>();

  function fits({ orgId, bytes }: Guest): boolean {
    const own = shares.get(orgId) ?? { guests: 0, bytes: 0 };
    return (
      all.guests < places &&
      all.bytes + bytes <= mostBytes &&
      own.guests < Math.ceil(places / 2) &&
      own.bytes + bytes <= mostBytes / 2
    );
  }

  function count({ orgId }: Guest, guests: number, bytes: number): void {
    const own = shares.get(orgId) ?? { guests: 0, bytes: 0 };
    for (const load of [all, own]) {
      load.guests += guests;
      load.bytes += bytes;
    }
    if (own.guests > 0) shares.set(orgId, own);
    else shares.delete(orgId);
  }

  function seat(guest: Guest): Place {
    count(guest, 1, guest.bytes);
    return {
      resize(bytes) {
        count(guest, 0, bytes - guest.bytes);
        guest.bytes = bytes;
        callNext();
      },
      leave() {
        count(guest, -1, -guest.bytes);
        callNext();
      },
    };
  }

  /** In the order of arrival, but nobody waits behind one that is too large now. */
  function callNext(): void {
    for (const one of line) {
      if (all.guests >= places) return;
      if (fits(one.guest)) one.come(seat(one.guest));
    }
  }

  function wait(guest: Guest): Promise<Place | null> {
    return new Promise((resolve) => {
      const waiting = {
        guest,
        come(place: Place | null) {
          cancel();
          line.delete(waiting);
          resolve(place);
        },
      };
      const cancel = clock.after(patienceMs, () => waiting.come(null));
      line.add(waiting);
    });
  }

  return {
    places,
    async enter(orgId, bytes) {
      const guest = { orgId, bytes };
      if (fits(guest)) return seat(guest);
      return line.size < places ? wait(guest) : null;
    },
  };
}
