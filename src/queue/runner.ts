/**
 * The runner: keeps as many deliveries in the air as there is room for, whatever the queue's length.
 *
 * It claims (which leases and commits), hands each delivery to its destination's line (dispatcher.ts), and what came
 * of it to `record`; no transaction is open in between. A delivery that has just been accepted comes without a claim,
 * where there is room. Its memory holds what is leased and the names of lanes, so it does not grow with the queue.
 *
 * It claims when it is told to, when the next delivery falls due, and once a second, because the command line and
 * other nodes change the queue without telling. Trouble with the store is reported and tried again. What a dead
 * process had in the air is found by its lease, and recorded as an interrupted attempt.
 */
import { pause } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { Attempt, Delivery } from '../nouns.ts';
import { createDispatcher, type DispatcherParts, type Place } from './dispatcher.ts';
import type { Lane } from './lanes.ts';
import type { Line } from './line.ts';
import type { Suspension } from './lines.ts';
import { createReturns, type How } from './returns.ts';

export interface Store {
  /** Leases what is due, or parks it, as `place` says of each; `isMore`: there was more than `limit`. */
  claimDue(claim: {
    now: number;
    limit: number;
    place(row: { domain: string; expiresAt: number }): 'take' | 'park';
  }): Promise<{ taken: Delivery[]; parked: Lane[]; isMore: boolean }>;
  /** Leases parked mail of these lanes, the longest parked first. */
  claimLanes(now: number, picks: (Lane & { limit: number })[]): Promise<Delivery[]>;
  giveBack(deliveries: Delivery[], how: How, now: number): Promise<void>;
  lanes(): Promise<Lane[]>;
  suspensions(now: number): Promise<Suspension[]>;
  /** What the operator is shown of the lines. */
  publish(lines: Iterable<Line>, now: number): Promise<void>;
  renewLeases(): Promise<void>;
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}

export interface RunnerParts
  extends Pick<DispatcherParts, 'destinationOf' | 'resolve' | 'deliver' | 'withheld' | 'onParked'> {
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
/** Parked mail that another node left behind is found by a look at all lanes. */
const lanesEveryMs = 10_000;
const mostAClaim = 200;

export function createRunner(parts: RunnerParts): Runner {
  const { store, clock } = parts;
  const cutShort = new AbortController();
  const dispatcher = createDispatcher({
    ...parts,
    keep,
    giveBack: (delivery, how) => returns.add(delivery, how),
    hungry,
    wake,
    isMoreDue: () => isMoreDue,
    stopped: cutShort.signal,
  });
  const returns = createReturns({
    commit: store.giveBack,
    onReturned(deliveries, how) {
      if (how === 'parked') noteLanes(deliveries);
    },
    onTrouble: parts.onTrouble,
    clock,
    stopped: cutShort.signal,
  });
  let stopping = false;
  let looking: Promise<void> | null = null;
  let dueAgain = false;
  let lanesAgain = false;
  let isMoreDue = false;
  let alarmAt = Number.POSITIVE_INFINITY;
  let claimedAt = Number.NEGATIVE_INFINITY;
  let tickedAt = Number.NEGATIVE_INFINITY;
  let lanesAt = Number.NEGATIVE_INFINITY;
  let findingLanes: Promise<void> | null = null;
  let cancelAlarm = () => {};
  let cancelRenewal = () => {};

  function wake(): void {
    dueAgain = true;
    hungry();
  }

  /** Room has come free for what waits in lanes and, where not all was taken, for what is due. */
  function hungry(): void {
    lanesAgain = true;
    dueAgain ||= isMoreDue;
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
        if (wantsDue) await claimDue();
        await claimLanes();
      }
    } catch (error) {
      lanesAgain = false;
      claimedAt = clock.now();
      parts.onTrouble('the queue cannot be read; trying again in a second', error);
    }
    const now = clock.now();
    alarm(Math.max(dispatcher.alarm(now), now + 1));
    alarm(claimedAt + pollMs);
  }

  async function claimDue(): Promise<void> {
    claimedAt = clock.now();
    const limit = Math.min(mostAClaim, dispatcher.room());
    if (limit <= 0) {
      isMoreDue = true;
      return;
    }
    const place = dispatcher.newPlacing();
    const claim = await store.claimDue({ now: claimedAt, limit, place });
    isMoreDue = claim.isMore;
    for (const delivery of claim.taken) dispatcher.arrive(delivery);
    noteLanes(claim.parked);
    if (isMoreDue) wake();
  }

  async function claimLanes(): Promise<void> {
    const picks = dispatcher.pickLanes(mostAClaim);
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

  /** What is done once a second: hear the operator, tell him, and now and then look for lanes. */
  async function tick(): Promise<void> {
    const now = clock.now();
    if (now < tickedAt + pollMs) return;
    tickedAt = now;
    dispatcher.suspend(await store.suspensions(now));
    if (now >= lanesAt + lanesEveryMs && !findingLanes) {
      lanesAt = now;
      findingLanes = findLanes(await store.lanes());
    }
    await store.publish(dispatcher.lines(), now);
    dispatcher.forgetIdle();
  }

  /** Their destinations may have to be looked up: some at a time, and nobody waits for it. */
  async function findLanes(lanes: Lane[]): Promise<void> {
    for (let start = 0; start < lanes.length && !stopping; start += mostAClaim) {
      await Promise.all(lanes.slice(start, start + mostAClaim).map(dispatcher.noteLane));
    }
    findingLanes = null;
  }

  function noteLanes(lanes: Lane[]): void {
    for (const lane of lanes) dispatcher.noteLane(lane);
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
      await findingLanes;
      await returns.done();
    },
  };
}
