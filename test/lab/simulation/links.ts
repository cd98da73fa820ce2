/** The ways between machines, as the faults want them to be; by the address at either end, and for all of port 25. */
import type { Link } from './network.ts';
import type { Random } from './random.ts';

export interface Way {
  connecting: 'open' | 'refused' | 'silent' | 'unreachable';
  isSilent: boolean;
  extraMs: number;
  /** The share of new connections that are cut at some byte. */
  cuts: number;
  /** The share of new connections whose bytes come in small pieces. */
  pieces: number;
}

const sound: Way = { connecting: 'open', isSilent: false, extraMs: 0, cuts: 0, pieces: 0 };

export class Links {
  readonly #random: Random;
  readonly #ways = new Map<string, Way>();
  /** Whether anything leaves to port 25. */
  port25: Way['connecting'] = 'open';

  constructor(random: Random) {
    this.#random = random;
  }

  /** Changes the way to and from an address; returns what undoes it. */
  change(address: string, changes: Partial<Way>): () => void {
    const before = this.#ways.get(address) ?? sound;
    this.#ways.set(address, { ...before, ...changes });
    return () => void this.#ways.set(address, { ...this.#ways.get(address)!, ...pick(before, changes) });
  }

  readonly between = (from: string, to: string, port: number): Link => {
    const random = this.#random;
    const ways = () => [this.#ways.get(from) ?? sound, this.#ways.get(to) ?? sound];
    const isCut = random.chance(Math.max(...ways().map(({ cuts }) => cuts)));
    const isInPieces = random.chance(Math.max(...ways().map(({ pieces }) => pieces)));
    const cutAfter = isCut ? Math.floor(random.next() ** 2 * 2_500) : null;
    return {
      latencyMs: () =>
        random.between(0.2, 8) + ways().reduce((sum, { extraMs }) => sum + extraMs * random.next(), 0),
      connecting: () => {
        if (port === 25 && this.port25 !== 'open') return this.port25;
        return ways().find(({ connecting }) => connecting !== 'open')?.connecting ?? 'open';
      },
      cutAfter: () => cutAfter,
      isSilent: () => ways().some(({ isSilent }) => isSilent),
      maxPiece: () => (isInPieces ? random.integer(1, 40) : 65_536),
    };
  };
}

function pick<Value extends object>(from: Value, names: Partial<Value>): Partial<Value> {
  const picked: Partial<Value> = {};
  for (const name of Object.keys(names) as (keyof Value)[]) picked[name] = from[name];
  return picked;
}
