/**
 * The runner: keeps as many deliveries in the air as there is room for, whatever the queue's length.
 *
 * It claims from lanes (which leases and commits), hands each delivery to its destination's line (dispatcher.ts), and
 * what came of it to `record`; no transaction is open in between. A delivery that has just been accepted comes without
 * a claim, where there is room. Its memory holds what is leased and the names of lanes, so it does not grow with the
 * queue; and nothing is read of what waits but what has its turn.
 *
 * It looks for what has fallen due (lookout.ts) when the next delivery does, and once a second, because the command
 * line and other nodes change the queue without telling. Trouble with the store is reported and tried again. What a dead
 * process had in the air is found by its lease, and recorded as an interrupted attempt.
 */
import { pause } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { Attempt, Delivery } from '../nouns.ts';
import { createDispatcher, type DispatcherParts, type Place } from './dispatcher.ts';
import type { Lane } from './lanes.ts';
import type { Line } from './line.ts';
import type { Suspension } from './lines.ts';
import { createLookout, type LookoutParts } from './lookout.ts';
import { createReturns } from './returns.ts';

export interface Store extends Pick<LookoutParts, 'findDue' | 'lanes'> {
  /** Leases what is due in these lanes, the longest due first. */
  claimLanes(now: number, picks: (Lane & { limit: number })[]): Promise<Delivery[]>;
  /** Leases what has reached its maximum age. */
  claimExpired(now: number, limit: number): Promise<Delivery[]>;
  giveBack(deliveries: Delivery[]): Promise<void>;
  suspensions(now: number): Promise<Suspension[]>;
  /** What the operator is shown of the lines. */
  publish(lines: Iterable<Line>, now: number): Promise<void>;
  renewLeases(): Promise<void>;
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}

export interface RunnerParts
  extends Pick<DispatcherParts, 'destinationOf' | 'resolve' | 'deliver' | 'withheld' | 'onWaiting'> {
  store: Store;
  /** The attempt of a process that ended before it could record it. */
  interrupted(delivery: Delivery): Attempt;
  /** Commits what came of an attempt; the time of the next, or null where there is none. */
  record(delivery: Delivery, attempt: Attempt): Promise<number | null>;
  onTrouble(what: string, error: unknown): void;
  clock: Clock;
  concurrency: number;
}

export interface Runner {
  start(): Promise<void>;
  /** There may be something due. */
  wake(): void;
  admit(domain: string, orgId: string): Place;
  /** Claims nothing more, gives what is in the air `graceMs` to end, then cuts it short. */
  stop(graceMs: number): Promise<void>;
}

const pollMs = 1000;
const renewEveryMs = 60_000;
const mostAClaim = 200;

export function createRunner(parts: RunnerParts): Runner {
  const { store, clock } = parts;
  const cutShort = new AbortController();
  const dispatcher = createDispatcher({
    ...parts,
    keep,
    giveBack: (delivery) => returns.add(delivery),
    hungry,
    isMore: () => isMore,
    stopped: cutShort.signal,
  });
  const returns = createReturns({
    commit: store.giveBack,
    onReturned(deliveries) {
      for (const delivery of deliveries) dispatcher.noteLane(delivery);
    },
    onTrouble: parts.onTrouble,
    clock,
    stopped: cutShort.signal,
  });
  const { noteLane } = dispatcher;
  const lookout = createLookout({ ...store, noteLane, onTrouble: parts.onTrouble, clock });
  let stopping = false;
  let looking: Promise<void> | null = null;
  let dueAgain = false;
  let lanesAgain = false;
  let isMore = false;
  let alarmAt = Number.POSITIVE_INFINITY;
  /** The last thorough look, and the last tick. */
  let lookedAt = Number.NEGATIVE_INFINITY;
  let tickedAt = Number.NEGATIVE_INFINITY;
  let cancelAlarm = () => {};
  let cancelRenewal = () => {};

  function wake(): void {
    dueAgain = true;
    hungry();
  }

  /** There is room for what waits in lanes, or a lane for which there is room. */
  function hungry(): void {
    lanesAgain = true;
    if (!stopping) looking ??= look().finally(looked);
  }

  /** Whoever called after the last look had ended, and before this, is heard here. */
  function looked(): void {
    looking = null;
    if (lanesAgain) hungry();
  }

  function alarm(at: number): void {
    if (stopping || at >= alarmAt) return;
    cancelAlarm();
    alarmAt = at;
    const ring = () => {
      alarmAt = Number.POSITIVE_INFINITY;
      wake();
    };
    const wait = at - clock.now();
    if (wait > 0) cancelAlarm = clock.after(wait, ring);
    else ring();
  }

  /** Claims until nothing is due or there is no room, then sets the alarm. */
  async function look(): Promise<void> {
    try {
      await tick();
      while (lanesAgain && !stopping) {
        const wantsDue = dueAgain;
        dueAgain = false;
        lanesAgain = false;
        dispatcher.pumpAll();
        if (wantsDue) await lookForDue();
        await claimLanes();
      }
    } catch (error) {
      lanesAgain = false;
      lookedAt = clock.now();
      parts.onTrouble('the queue cannot be read; trying again in a second', error);
    }
    const now = clock.now();
    alarm(Math.max(dispatcher.alarm(now), now + 1));
    alarm(Math.min(lookedAt, now) + pollMs);
  }

  /** Once a second the look is thorough, and for what has grown too old as well. */
  async function lookForDue(): Promise<void> {
    const now = clock.now();
    const isThorough = hasPassed(lookedAt);
    if (isThorough) lookedAt = now;
    await lookout.look(isThorough);
    if (!isThorough) return;
    const limit = Math.min(mostAClaim, dispatcher.room());
    const expired = limit > 0 ? await store.claimExpired(now, limit) : [];
    for (const delivery of expired) dispatcher.arrive(delivery);
    // There may be more: the next look is thorough too.
    if (limit > 0 && expired.length === limit) {
      lookedAt = Number.NEGATIVE_INFINITY;
      wake();
    }
  }

  async function claimLanes(): Promise<void> {
    const { picks, isCut } = dispatcher.pickLanes(mostAClaim);
    isMore = isCut;
    if (picks.length === 0) return;
    const claimed = await store.claimLanes(
      clock.now(),
      picks.map(({ pick, limit }) => ({ domain: pick.domain, orgId: pick.orgId, limit })),
    );
    const counts = new Map<string, number>();
    for (const { domain, orgId } of claimed) {
      counts.set(`${orgId} ${domain}`, (counts.get(`${orgId} ${domain}`) ?? 0) + 1);
    }
    for (const { line, pick, limit } of picks) {
      if ((counts.get(`${pick.orgId} ${pick.domain}`) ?? 0) < limit) line.lanes.remove(pick);
    }
    for (const delivery of claimed) dispatcher.arrive(delivery);
    if (claimed.length > 0) hungry();
  }

  /** What is done once a second: hear the operator, tell him, and now and then walk along the lanes. */
  async function tick(): Promise<void> {
    if (!hasPassed(tickedAt)) return;
    const now = clock.now();
    tickedAt = now;
    dispatcher.suspend(await store.suspensions(now));
    lookout.tick();
    await store.publish(dispatcher.lines(), now);
    dispatcher.forgetIdle();
  }

  /** A second since then; a clock that is set back stops nothing. */
  function hasPassed(time: number): boolean {
    return Math.abs(clock.now() - time) >= pollMs;
  }

  /** An outcome is kept at last: what was delivered must not be delivered again because the disk was full. */
  async function keep(delivery: Delivery, attempt: Attempt): Promise<void> {
    for (;;) {
      try {
        const nextAt = await parts.record(delivery, attempt);
        if (nextAt !== null) alarm(nextAt);
        return;
      } catch (error) {
        parts.onTrouble(`the outcome of delivery ${delivery.id} cannot be recorded; trying again`, error);
        if (cutShort.signal.aborted) return;
        await pause(clock, pollMs, cutShort.signal);
      }
    }
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
        await store.renewLeases();
        await recover('expired');
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
    admit: dispatcher.admit,
    async stop(graceMs) {
      stopping = true;
      cancelAlarm();
      cancelRenewal();
      const timer = setTimeout(() => cutShort.abort(), graceMs);
      const landed = dispatcher.stop();
      await looking;
      await landed;
      clearTimeout(timer);
      await lookout.stop();
      await returns.done();
    },
  };
}
