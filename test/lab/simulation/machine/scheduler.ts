/**
 * One virtual clock and one event loop for everything that is simulated. An event runs when no event is due before it; then
 * its promises and ticks run until none is left; then the next event runs. Events of the same time run in the order in which
 * they were scheduled. Nothing else starts code, so a run is a function of its seed.
 *
 * Every event belongs to a machine. While it runs, its machine is the current one, and what it schedules belongs to that
 * machine too. So a machine is killed by never running its events again, at any await of its code, and each machine can have
 * a clock that is wrong by itself.
 */

/** What an event belongs to: a process on a computer of its own, or an actor. A restart makes a new one. */
export interface Machine {
  readonly name: string;
  isAlive: boolean;
  /** How far its clock is ahead of the true time. */
  clockAheadMs: number;
  /** A process of ours, which sleeps while nothing can happen (see `Scheduler.sleepUntil`). */
  isService?: boolean;
}

export interface Scheduled {
  /** By the clock of its kind of machine. */
  at: number;
  /** Null: it has run, or was canceled. */
  run: (() => void) | null;
  readonly machine: Machine;
  readonly order: number;
}

// The real ones, before they are replaced.
const realSetImmediate = setImmediate;

/** Of an actor. */
export const newMachine = (name: string): Machine => ({ name, isAlive: true, clockAheadMs: 0 });

/** The machine of the simulation itself. */
export const world = newMachine('world');

class Scheduler {
  /** Milliseconds since the start; never goes back. */
  now = 0;
  /** The true time at the start, since the epoch. */
  startedAt = 0;
  current: Machine = world;
  /** Events that have run. */
  count = 0;
  /** Of the order and the times of all events: two runs of a seed have the same. */
  fingerprint = 0;
  /** An exception that nobody handled, in the code of a machine. */
  onCrash: (machine: Machine, error: unknown) => void = (machine, error) => {
    throw new Error(`${machine.name} threw`, { cause: error });
  };
  /** Until when nothing but the clocks of services can make anything happen; asked while it is quiet. */
  sleepUntil: () => number = () => Number.NEGATIVE_INFINITY;
  /** How long services have slept. */
  sleptMs = 0;
  sleeps = 0;
  #activeAt = 0;
  #order = 0;
  #actors = new Heap();
  #services = new Heap();
  /** What is under way outside of the simulation. */
  #holds = 0;
  #onRelease: (() => void) | null = null;
  /** Due now, in order; faster than a heap. */
  #soon: Scheduled[] = [];
  #soonAt = 0;

  /** The true time. */
  get time(): number {
    return this.startedAt + this.now;
  }

  /** The time that the current machine's clock shows, as Date.now does. */
  readonly wallClock = (): number => Math.floor(this.startedAt + this.now + this.current.clockAheadMs);

  /** What performance.now shows: it stands still while a machine sleeps. */
  readonly monotonic = (): number => this.now - (this.current.isService ? this.sleptMs : 0);

  /** How long services have been awake. */
  get awakeMs(): number {
    return this.now - this.sleptMs;
  }

  after(ms: number, run: () => void, machine = this.current): Scheduled {
    const base = machine.isService ? this.now - this.sleptMs : this.now;
    const scheduled = { at: base + Math.max(ms, 0), run, machine, order: ++this.#order };
    if (ms <= 0) this.#soon.push(scheduled);
    else if (machine.isService) this.#services.push(scheduled);
    else this.#actors.push(scheduled);
    return scheduled;
  }

  /** For a run. In one process, seeds must ascend: each has a month of its own, because ids never go back. */
  reset(seed: number): void {
    this.now =
      this.sleptMs =
      this.sleeps =
      this.#activeAt =
      this.#order =
      this.count =
      this.fingerprint =
      this.#soonAt =
        0;
    this.startedAt = Date.UTC(2026, 0, 5) + ((seed - 1) % 1000) * 30 * 24 * 3_600_000;
    this.current = world;
    this.#actors = new Heap();
    this.#services = new Heap();
    this.#soon = [];
  }

  /** Something has happened that was not only a look at the clock. */
  noteActivity(): void {
    this.#activeAt = this.now;
  }

  /** No event runs, and no time passes, until the function that is returned is called. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      const onRelease = this.#onRelease;
      this.#onRelease = null;
      onRelease?.();
    };
  }

  /** Runs code of a machine now. */
  as<Result>(machine: Machine, run: () => Result): Result {
    const before = this.current;
    this.current = machine;
    try {
      return run();
    } finally {
      this.current = before;
    }
  }

  /** Runs events until the time, or until `isOver`. */
  runUntil(time: number, isOver = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      let isDone = false;
      const step = () => {
        if (isDone || this.#holds > 0) return;
        try {
          this.current = world;
          const next = isOver() ? null : this.#next(time);
          if (next) return this.#runOne(next);
          if (!isOver()) this.now = Math.max(this.now, time);
          resolve();
        } catch (error) {
          reject(error);
        }
        isDone = true;
      };
      const turn = () => {
        if (isDone) return;
        if (this.#holds > 0) {
          this.#onRelease = turn;
          return;
        }
        for (let n = 0; n < stepsInTurn; n++) realSetImmediate(step);
        realSetImmediate(turn);
      };
      turn();
    });
  }

  #runOne(next: Scheduled): void {
    const { run, machine, order } = next;
    next.run = null;
    this.current = machine;
    this.count += 1;
    this.fingerprint = (Math.imul(this.fingerprint, 31) + order + Math.floor(this.now * 1000)) | 0;
    if (!machine.isService) this.#activeAt = this.now;
    try {
      run!();
    } catch (error) {
      this.onCrash(machine, error);
    }
  }

  #next(until: number): Scheduled | null {
    for (;;) {
      const next = this.#soonAt < this.#soon.length ? this.#soon[this.#soonAt++]! : this.#takeLater(until);
      if (this.#soonAt > 0 && this.#soonAt === this.#soon.length) {
        this.#soon = [];
        this.#soonAt = 0;
      }
      if (!next) return null;
      if (!next.run || !next.machine.isAlive) continue;
      return next;
    }
  }

  #takeLater(until: number): Scheduled | null {
    if (this.now - this.#activeAt >= quietMs) this.#sleep(until);
    const [actor, service] = [this.#actors.first, this.#services.first];
    const actorAt = actor?.at ?? Number.POSITIVE_INFINITY;
    const serviceAt = service ? service.at + this.sleptMs : Number.POSITIVE_INFINITY;
    const at = Math.min(actorAt, serviceAt);
    if (at > until) return null;
    this.now = Math.max(this.now, at);
    return actorAt <= serviceAt ? this.#actors.pop() : this.#services.pop();
  }

  /**
   * While it is quiet, services do nothing but look, some times a second. They sleep instead, as a laptop does: their timers
   * and their monotonic clock stand still, and the time of day goes on. Awake at least `quietMs` at a time, they see each change.
   */
  #sleep(until: number): void {
    const end = Math.min(until, this.#actors.first?.at ?? until, this.sleepUntil()) - wakeBeforeMs;
    this.#activeAt = this.now;
    if (end <= this.now) return;
    this.sleeps += 1;
    this.sleptMs += end - this.now;
    this.now = end;
    this.#activeAt = end;
  }
}

/** Events in a turn of Node's loop: promises and ticks run to their end after each, and a turn asks the system for its events. */
const stepsInTurn = 100;
/** Longer than the longest interval of a look at the queue. */
const quietMs = 1_100;
const wakeBeforeMs = 50;

/** A binary heap by time, then order. */
class Heap {
  readonly #items: Scheduled[] = [];

  get first(): Scheduled | undefined {
    return this.#items[0];
  }

  push(item: Scheduled): void {
    const heap = this.#items;
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(item, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = item;
  }

  pop(): Scheduled {
    const heap = this.#items;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** The only one of the process, because timers and sockets are global. */
export const scheduler = new Scheduler();
