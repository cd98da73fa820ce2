/**
 * Bounds how many sends are in progress, from the API key to the response, and the total size of their bodies: those
 * that are read, composed, signed or wait for their commit. So memory is bounded, however slow disk and CPU are. A send
 * that finds no slot waits for a moment and is then refused before any of its body is read.
 *
 * Bytes count when they arrive, not when a client announces them. An organization can hold as many slots and bytes as
 * are free beside its own: half of all if it is alone, a third if another does the same. The last part of the bytes is
 * reserved for small bodies.
 */
import type { Clock } from '#platform/base/clock.ts';
import { ByteBudget, type ByteHold } from '#platform/base/limits/byte-budget.ts';
import { Slots } from '#platform/base/limits/slots.ts';

/** A parsed and composed body takes about four times its size, so this bounds memory to 256 MiB. */
const maxBytes = 64 * 1024 * 1024;
const smallBodyReserve = 8 * 1024 * 1024;
/** Longer than a busy disk or a few large bodies take, shorter than the timeout of any client. */
const timeoutMs = 3000;

export class Admission {
  /** The number of sends that can have a slot at the same time. */
  readonly maxSlots: number;
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #bytes: ByteBudget;

  constructor(maxSlots: number, clock: Clock) {
    this.maxSlots = maxSlots;
    this.#clock = clock;
    const ofOne = 'as many as are free';
    this.#slots = new Slots({ inAll: maxSlots, ofOne });
    this.#bytes = new ByteBudget({ max: maxBytes, reserve: smallBodyReserve, ofOne, timeoutMs, clock });
  }

  /** `bytes` have arrived before. Resolves to null if no slot became free in time. */
  async acquire(orgId: string, bytes = 0): Promise<ByteHold | null> {
    const taken = this.#slots.take(orgId);
    const free = typeof taken === 'function' ? taken : await this.#wait(orgId);
    if (!free) return null;
    const hold = this.#bytes.open(orgId);
    const release = () => {
      hold.release();
      free();
    };
    if (bytes === 0 || (await hold.add(bytes))) return { add: hold.add, release };
    release();
    return null;
  }

  /** At most as many sends of an organization wait as can have a slot. */
  async #wait(orgId: string): Promise<(() => void) | null> {
    const { waiting } = this.#slots;
    if (waiting.total >= this.maxSlots || waiting.of(orgId) >= Math.ceil(this.maxSlots / 2)) return null;
    const time = new AbortController();
    const cancel = this.#clock.after(timeoutMs, () => time.abort());
    return this.#slots.enter(orgId, { signal: time.signal }).finally(cancel);
  }
}
