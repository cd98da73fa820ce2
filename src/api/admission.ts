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

interface Load {
  slots: number;
  bytes: number;
}

/** A send that has a slot or waits for one. */
interface Holder {
  orgId: string;
  bytes: number;
  /** Increases with each send. */
  number: number;
  hasSlot: boolean;
}

interface Waiting {
  holder: Holder;
  /** The bytes that the holder needs beside those that it holds. */
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

export class Admission {
  /** The number of sends that can have a slot at the same time. */
  readonly maxSlots: number;
  readonly #clock: Clock;
  readonly #total: Load = { slots: 0, bytes: 0 };
  readonly #byOrganization = new Map<string, Load>();
  /** Holders that wait for a slot, in order of arrival. */
  readonly #queue = new Set<Waiting>();
  /** Holders of a slot whose half-read body does not fit now. */
  readonly #halfRead = new Set<Waiting>();
  #lastNumber = 0;

  constructor(maxSlots: number, clock: Clock) {
    this.maxSlots = maxSlots;
    this.#clock = clock;
  }

  /** `bytes` have arrived before. Resolves to null if no slot became free in time. */
  async acquire(orgId: string, bytes = 0): Promise<Slot | null> {
    this.#lastNumber += 1;
    const holder = { orgId, number: this.#lastNumber, bytes: 0, hasSlot: false };
    if (this.#fits(holder, bytes)) this.#take(holder, bytes);
    else if (!this.#canQueue(holder) || !(await this.#wait(holder, bytes))) return null;
    return {
      add: (more) => this.#add(holder, more),
      release: () => this.#release(holder),
    };
  }

  #add(holder: Holder, bytes: number): true | Promise<boolean> {
    if (this.#isBehind(holder, bytes) || !this.#fits(holder, bytes)) return this.#wait(holder, bytes);
    this.#take(holder, bytes);
    return true;
  }

  #release(holder: Holder): void {
    for (const waiting of this.#halfRead) if (waiting.holder === holder) waiting.end(false);
    this.#count(holder, -1, -holder.bytes);
    this.#admitWaiting();
  }

  #loadOf(orgId: string): Load {
    return this.#byOrganization.get(orgId) ?? { slots: 0, bytes: 0 };
  }

  #fits(holder: Holder, bytes: number): boolean {
    const total = this.#total;
    const own = this.#loadOf(holder.orgId);
    const hasSlot = holder.hasSlot || own.slots < this.maxSlots - total.slots;
    const isSmall = holder.bytes + bytes <= smallBody;
    const max = isSmall ? maxBytes : maxBytes - smallBodyReserve;
    return hasSlot && total.bytes + bytes <= max && (isSmall || own.bytes + bytes <= max - total.bytes);
  }

  #take(holder: Holder, bytes: number): void {
    this.#count(holder, holder.hasSlot ? 0 : 1, bytes);
    holder.hasSlot = true;
  }

  #count(holder: Holder, slots: number, bytes: number): void {
    const own = this.#loadOf(holder.orgId);
    for (const load of [this.#total, own]) {
      load.slots += slots;
      load.bytes += bytes;
    }
    holder.bytes += bytes;
    if (own.slots > 0) this.#byOrganization.set(holder.orgId, own);
    else this.#byOrganization.delete(holder.orgId);
  }

  /** In order of arrival, except that nothing waits behind a body that is too large now. */
  #admitWaiting(): void {
    for (const waiting of [...this.#halfRead].sort((a, b) => a.holder.number - b.holder.number))
      this.#admitIfItFits(waiting);
    for (const waiting of this.#queue) {
      if (this.#total.slots >= this.maxSlots) return;
      this.#admitIfItFits(waiting);
    }
  }

  #admitIfItFits({ holder, bytes, end }: Waiting): void {
    if (this.#isBehind(holder, bytes) || !this.#fits(holder, bytes)) return;
    this.#take(holder, bytes);
    end(true);
  }

  /** Half-read bodies of one organization that fill its share would all wait for each other, so the oldest goes first. */
  #isBehind(one: Holder, bytes: number): boolean {
    if (this.#halfRead.size === 0 || !one.hasSlot || one.bytes + bytes <= smallBody) return false;
    return this.#halfReadOf(one.orgId).some(({ holder }) => holder.number < one.number);
  }

  #halfReadOf(orgId: string): Waiting[] {
    return [...this.#halfRead].filter(({ holder }) => holder.orgId === orgId);
  }

  /** At most as many sends of an organization wait as can have a slot. */
  #canQueue({ orgId }: Holder): boolean {
    const own = [...this.#queue].filter(({ holder }) => holder.orgId === orgId).length;
    return this.#queue.size < this.maxSlots && own < Math.ceil(this.maxSlots / 2);
  }

  #wait(holder: Holder, bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waitingList = holder.hasSlot ? this.#halfRead : this.#queue;
      const timeUp = () => {
        const refused = holder.hasSlot ? this.#youngestHalfReadOf(holder.orgId) : waiting;
        refused.end(false);
        if (refused !== waiting) cancel = this.#clock.after(timeoutMs, timeUp);
      };
      let cancel = this.#clock.after(timeoutMs, timeUp);
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

  /** The youngest of an organization's half-read bodies that wait loses least when it is refused. */
  #youngestHalfReadOf(orgId: string): Waiting {
    return this.#halfReadOf(orgId).reduce((a, b) => (a.holder.number > b.holder.number ? a : b));
  }
}
