/**
 * Shares the turns of the event loop among client networks: however many requests one network has sent at once, a request of
 * another waits for a few of them only. A turn begins a bounded number of requests, one of each line after the other, and a
 * network has a bounded number in work. A network has two lines, so that its clients that send one request at a time do not wait
 * for those that send many at once.
 */
import { CountedMap } from '#platform/base/limits/counted-map.ts';

/** A refused request takes 0.2 ms. */
const maxPerTurn = 16;
/** Far more than honest clients have: their networks may have four times as many connections. */
const maxInWork = 250;

export interface ClientNetwork {
  name: string;
  /** A proxy that does not name its clients: any number of its requests may be in work. */
  isProxy: boolean;
}

/** Begins a request; `leave` must be called when it is no longer in work. */
type Begin = (leave: () => void) => void;

interface Line {
  network: ClientNetwork;
  waiting: Set<Begin>;
}

export class RequestTurns {
  readonly #inWork = new CountedMap();
  /** In the order in which they are served; none is empty. */
  readonly #lines = new Map<string, Line>();
  /** Requests begun in this turn. */
  #begun = 0;
  #isTurnRequested = false;

  /** Begins the request, now if that is fair. `isPipelined`: it was sent before the one in front of it was answered. */
  enter(network: ClientNetwork, isPipelined: boolean, begin: Begin): void {
    const isFair = !isPipelined && this.#begun < maxPerTurn && this.#lines.size === 0;
    if (isFair && this.#hasRoom(network)) {
      this.#begin(network, begin);
      return;
    }
    const name = isPipelined ? `${network.name} pipelined` : network.name;
    const line = this.#lines.get(name) ?? { network, waiting: new Set() };
    line.waiting.add(begin);
    this.#lines.set(name, line);
    this.#requestTurn();
  }

  #hasRoom({ name, isProxy }: ClientNetwork): boolean {
    return isProxy || this.#inWork.of(name) < maxInWork;
  }

  #begin({ name }: ClientNetwork, begin: Begin): void {
    this.#begun += 1;
    this.#requestTurn();
    this.#inWork.add(name, 1);
    begin(() => {
      this.#inWork.add(name, -1);
      if (this.#lines.size > 0) this.#requestTurn();
    });
  }

  #requestTurn(): void {
    if (this.#isTurnRequested) return;
    this.#isTurnRequested = true;
    setImmediate(() => {
      this.#isTurnRequested = false;
      this.#begun = 0;
      this.#serveTurn();
    });
  }

  /** Until the turn is full, or no request that waits may begin. */
  #serveTurn(): void {
    for (const [name, line] of this.#lines) {
      if (this.#begun >= maxPerTurn) return;
      if (!this.#hasRoom(line.network)) continue;
      const [first] = line.waiting;
      line.waiting.delete(first!);
      // At the end, where this loop comes to it again after all others.
      this.#lines.delete(name);
      if (line.waiting.size > 0) this.#lines.set(name, line);
      this.#begin(line.network, first!);
    }
  }
}
