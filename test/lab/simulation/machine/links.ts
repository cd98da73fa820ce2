/** The ways between machines, as the faults want them to be; by the address at either end, and for all of port 25. */

import type { Random } from '../random.ts';
import type { Link } from './network.ts';

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
  readonly #changes = new Map<string, Set<Partial<Way>>>();
  readonly #ways = new Map<string, Way>();
  readonly #parted = new Set<string>();
  /** Whether anything leaves to port 25. */
  port25: Way['connecting'] = 'open';

  constructor(random: Random) {
    this.#random = random;
  }

  /** Changes the way to and from an address; returns what undoes it. */
  change(address: string, changes: Partial<Way>): () => void {
    const all = this.#changes.get(address) ?? new Set();
    this.#changes.set(address, all.add(changes));
    this.#ways.set(address, combined(all));
    return () => {
      all.delete(changes);
      this.#ways.set(address, combined(all));
    };
  }

  /** Nothing passes between two addresses; returns what undoes it. */
  part(one: string, other: string): () => void {
    const pairs = [`${one} ${other}`, `${other} ${one}`];
    for (const pair of pairs) this.#parted.add(pair);
    return () => {
      for (const pair of pairs) this.#parted.delete(pair);
    };
  }

  readonly between = (from: string, to: string, port: number): Link => {
    const random = this.#random;
    const ways = () => [this.#ways.get(from) ?? sound, this.#ways.get(to) ?? sound];
    const isCut = random.chance(Math.max(...ways().map(({ cuts }) => cuts)));
    const isInPieces = random.chance(Math.max(...ways().map(({ pieces }) => pieces)));
    const isParted = () => this.#parted.has(`${from} ${to}`);
    const cutAfter = isCut ? Math.floor(random.next() ** 2 * 2_500) : null;
    return {
      latencyMs: () =>
        random.between(0.2, 8) + ways().reduce((sum, { extraMs }) => sum + extraMs * random.next(), 0),
      connecting: () => {
        if (isParted()) return 'silent';
        if (port === 25 && this.port25 !== 'open') return this.port25;
        return ways().find(({ connecting }) => connecting !== 'open')?.connecting ?? 'open';
      },
      cutAfter: () => cutAfter,
      isSilent: () => isParted() || ways().some(({ isSilent }) => isSilent),
      maxPiece: () => (isInPieces ? random.integer(1, 40) : 65_536),
    };
  };
}

/** Each change at its worst. */
function combined(changes: Set<Partial<Way>>): Way {
  const way = { ...sound };
  for (const { connecting = 'open', isSilent = false, extraMs = 0, cuts = 0, pieces = 0 } of changes) {
    if (connecting !== 'open') way.connecting = connecting;
    way.isSilent ||= isSilent;
    way.extraMs = Math.max(way.extraMs, extraMs);
    way.cuts = Math.max(way.cuts, cuts);
    way.pieces = Math.max(way.pieces, pieces);
  }
  return way;
}
