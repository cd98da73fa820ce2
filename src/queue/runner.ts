/**
 * The runner: keeps as many due deliveries in the air as there is room for.
 *
 * Owns nothing durable. It claims (which leases and commits), hands each delivery to `deliver`, and hands what came
 * of it to `record`; no transaction is open in between. It holds only the deliveries in the air, so its memory does
 * not grow with the queue. A domain has a bounded share of the room: a slow one never takes all of it.
 *
 * It wakes when it is told to (a send was accepted), when the next delivery falls due, and once a second, because
 * the command line and other nodes change the queue without telling. Trouble with the store is reported and tried
 * again. What a dead process had in the air is found by its lease, and recorded as an interrupted attempt.
 */
import type { Clock } from '../clock.ts';
import type { Attempt, Delivery } from '../nouns.ts';

export interface Store {
  claim(room: {
    now: number;
    room: number;
    roomFor(domain: string): number;
    full: string[];
  }): Promise<Delivery[]>;
  nextDueAt(): Promise<number | null>;
  renewLeases(): Promise<void>;
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}

export interface RunnerParts {
  store: Store;
  /** Never throws: whatever happens on the way is an attempt with a verdict. */
  deliver(delivery: Delivery, stopped: AbortSignal): Promise<Attempt>;
  /** The attempt of a process that ended before it could record it. */
  interrupted(delivery: Delivery): Attempt;
  record(delivery: Delivery, attempt: Attempt): Promise<void>;
  onTrouble(what: string, error: unknown): void;
  clock: Clock;
  concurrency: number;
  perDomain: number;
}

export interface Runner {
  start(): Promise<void>;
  /** There may be something due. */
  wake(): void;
  /** Claims nothing more, gives what is in the air `graceMs` to end, then cuts it short. */
  stop(graceMs: number): Promise<void>;
}

const pollMs = 1000;
const renewEveryMs = 60_000;

export function createRunner(parts: RunnerParts): Runner {
  const { store, clock } = parts;
  const inTheAir = new Map<string, Promise<void>>();
  const perDomain = new Map<string, number>();
  const cutShort = new AbortController();
  let stopping = false;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let cancelPoll = () => {};
  let cancelRenewal = () => {};

  const room = () => parts.concurrency - inTheAir.size;
  const roomFor = (domain: string) => parts.perDomain - (perDomain.get(domain) ?? 0);

  function wake(): void {
    lookAgain = true;
    if (!stopping) looking ??= look().finally(looked);
  }

  /** Whoever woke us after the last look had ended, and before this was called, is heard here. */
  function looked(): void {
    looking = null;
    if (lookAgain) wake();
  }

  /** Claims until nothing is due or there is no room, then sets the alarm. */
  async function look(): Promise<void> {
    cancelPoll();
    let alarm = clock.now() + pollMs;
    try {
      while (lookAgain && !stopping) {
        lookAgain = false;
        const now = clock.now();
        const claimed = room() > 0 ? await claim(now) : 0;
        alarm = claimed > 0 ? now : await nextAlarm(now);
        if (alarm <= clock.now()) lookAgain = true;
      }
    } catch (error) {
      parts.onTrouble('the queue cannot be read; trying again in a second', error);
    }
    if (!stopping) cancelPoll = clock.after(Math.max(alarm - clock.now(), 0), wake);
  }

  /** What was due at the claim of `claimedAt` and was not taken waits for room; whoever makes room wakes us. */
  async function nextAlarm(claimedAt: number): Promise<number> {
    const poll = clock.now() + pollMs;
    const due = room() > 0 ? await store.nextDueAt() : null;
    return due !== null && due > claimedAt ? Math.min(due, poll) : poll;
  }

  async function claim(now: number): Promise<number> {
    const full = [...perDomain.keys()].filter((domain) => roomFor(domain) <= 0);
    const deliveries = await store.claim({ now, room: room(), roomFor, full });
    for (const delivery of deliveries) launch(delivery);
    return deliveries.length;
  }

  function launch(delivery: Delivery): void {
    perDomain.set(delivery.domain, (perDomain.get(delivery.domain) ?? 0) + 1);
    inTheAir.set(
      delivery.id,
      fly(delivery).finally(() => land(delivery)),
    );
  }

  async function fly(delivery: Delivery): Promise<void> {
    const attempt = await parts.deliver(delivery, cutShort.signal);
    await keep(delivery, attempt);
  }

  /** An outcome is kept at last: what was delivered must not be delivered again because the disk was full. */
  async function keep(delivery: Delivery, attempt: Attempt): Promise<void> {
    for (;;) {
      try {
        return await parts.record(delivery, attempt);
      } catch (error) {
        parts.onTrouble(`the outcome of delivery ${delivery.id} cannot be recorded; trying again`, error);
        if (cutShort.signal.aborted) return;
        await new Promise<void>((resolve) => clock.after(pollMs, resolve));
      }
    }
  }

  function land(delivery: Delivery): void {
    inTheAir.delete(delivery.id);
    const left = perDomain.get(delivery.domain)! - 1;
    if (left > 0) perDomain.set(delivery.domain, left);
    else perDomain.delete(delivery.domain);
    wake();
  }

  async function recover(which: 'own' | 'expired'): Promise<void> {
    let deliveries: Delivery[];
    do {
      deliveries = await store.takeBack(which);
      await Promise.all(deliveries.map((delivery) => keep(delivery, parts.interrupted(delivery))));
    } while (deliveries.length > 0);
  }

  function renewLater(): void {
    cancelRenewal = clock.after(renewEveryMs, async () => {
      try {
        if (inTheAir.size > 0) await store.renewLeases();
        await recover('expired');
        wake();
      } catch (error) {
        parts.onTrouble('leases could not be renewed; trying again in a minute', error);
      }
      if (!stopping) renewLater();
    });
  }

  return {
    async start() {
      await recover('own');
      renewLater();
      wake();
    },
    wake,
    async stop(graceMs) {
      stopping = true;
      cancelPoll();
      cancelRenewal();
      await looking;
      const timer = setTimeout(() => cutShort.abort(), graceMs);
      await Promise.all(inTheAir.values());
      clearTimeout(timer);
    },
  };
}
