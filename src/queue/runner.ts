/**
 * The runner: keeps as many deliveries in the air as there is room for, whatever the queue's length.
 *
 * It claims from lanes (which leases and commits), hands each delivery to its destination's line (dispatcher.ts), and
 * what came of it to `record`; no transaction is open in between. A delivery that has just been accepted comes without
 * a claim, where there is room. Its memory holds what is leased and the names of lanes, so it does not grow with the
 * queue; and nothing is read of what waits but what has its turn.
 *
 * It looks for what has fallen due (due-scanner.ts) when the next delivery does, and once a second, because the command
 * line and other nodes change the queue without telling. Trouble with the store is reported and tried again. What a dead
 * process had in the air is found by its lease, and recorded as an interrupted attempt.
 */
import { pause } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Attempt, Delivery } from '../glossary.ts';
import type { Backlog } from './backlogs.ts';
import { createDispatcher, type DispatcherParts, type DispatchPlace } from './dispatcher.ts';
import { createDueScanner, type DueScannerParts } from './due-scanner.ts';
import { createHeldLeases } from './held-leases.ts';
import { createLeaseRelease } from './lease-release.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { Suspension } from './ready-queues.ts';
import type { Peers } from './share.ts';

export interface Store extends Pick<DueScannerParts, 'findDue' | 'listBacklogs'> {
  /** Leases what is due in these lanes, the longest due first. */
  claimBacklogs(now: number, picks: (Backlog & { limit: number })[]): Promise<Delivery[]>;
  /** Leases what has reached its maximum age. */
  claimExpired(now: number, limit: number): Promise<Delivery[]>;
  releaseLeases(deliveries: Delivery[]): Promise<void>;
  suspensions(now: number): Promise<Suspension[]>;
  /** Learns which pools of source addresses mail leaves from, and who is paused; whether that has changed. */
  readPools(now: number): Promise<boolean>;
  /** What the operator is shown of the lines. */
  publish(readyQueues: Iterable<ReadyQueue>, now: number): Promise<void>;
  /** With the ids of those that were still this node's. */
  renewLeases(ids: string[]): Promise<Set<string>>;
  freeOrphans(): Promise<void>;
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}

export interface RunnerParts
  extends Pick<
    DispatcherParts,
    | 'destinationOf'
    | 'resolve'
    | 'deliver'
    | 'notAttempted'
    | 'onWaiting'
    | 'isOurs'
    | 'isPaused'
    | 'notifyOthers'
  > {
  store: Store;
  peers: Peers;
  /** The attempt of a process that ended before it could record it. */
  interrupted(delivery: Delivery): Attempt;
  /** Commits what came of an attempt; the time of the next, or null where there is none. */
  record(delivery: Delivery, attempt: Attempt): Promise<number | null>;
  onError(what: string, error: unknown): void;
  clock: Clock;
  concurrency: number;
  /** How long a lease lasts. */
  leaseMs: number;
}

export interface Runner {
  start(): Promise<void>;
  /** There may be something due. */
  wake(): void;
  /** Mail waits in this lane, due: another node says so. */
  noteBacklog(lane: Backlog): void;
  admit(domain: string, orgId: string): DispatchPlace;
  /** Claims nothing more, gives what is in the air `graceMs` to end, then cuts it short. */
  stop(graceMs: number): Promise<void>;
}

const pollMs = 1000;
const maxPerClaim = 200;

export function createRunner(parts: RunnerParts): Runner {
  const { store, peers, clock } = parts;
  const cutShort = new AbortController();
  const leases = createHeldLeases({
    ...{ renew: store.renewLeases, freeOrphans: store.freeOrphans, takeOver: () => recover('expired') },
    ...{ leaseMs: parts.leaseMs, onError: parts.onError, clock },
  });
  const dispatcher = createDispatcher({
    ...parts,
    leases,
    recordOutcome: keep,
    release: (delivery) => returns.add(delivery),
    requestClaim: hungry,
    wasClaimCut: () => isMore,
    stopped: cutShort.signal,
  });
  const returns = createLeaseRelease({
    commit: store.releaseLeases,
    onReleased(deliveries) {
      for (const delivery of deliveries) {
        leases.end(delivery);
        dispatcher.announceBacklog(delivery);
      }
    },
    onError: parts.onError,
    clock,
    stopped: cutShort.signal,
  });
  const { noteBacklog } = dispatcher;
  const lookout = createDueScanner({ ...store, noteBacklog, onError: parts.onError, clock });
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
      while (lanesAgain && !stopping) {
        await tick();
        const wantsDue = dueAgain;
        dueAgain = false;
        lanesAgain = false;
        dispatcher.drainAll();
        if (wantsDue) await lookForDue();
        await claimBacklogs();
      }
    } catch (error) {
      lanesAgain = false;
      lookedAt = clock.now();
      parts.onError('the queue cannot be read; trying again in a second', error);
    }
    const now = clock.now();
    alarm(Math.max(dispatcher.wakeAt(now), now + 1));
    alarm(Math.min(lookedAt, tickedAt, now) + pollMs);
  }

  /** Once a second the look is thorough, and for what has grown too old as well. */
  async function lookForDue(): Promise<void> {
    const now = clock.now();
    const isThorough = hasPassed(lookedAt);
    if (isThorough) lookedAt = now;
    await lookout.scanNewlyDue(isThorough);
    if (!isThorough) return;
    const limit = Math.min(maxPerClaim, dispatcher.freeLeases());
    const expired = limit > 0 ? await store.claimExpired(now, limit) : [];
    for (const delivery of expired) arrive(delivery);
    // There may be more: the next look is thorough too.
    if (limit > 0 && expired.length === limit) {
      lookedAt = Number.NEGATIVE_INFINITY;
      wake();
    }
  }

  async function claimBacklogs(): Promise<void> {
    const { claims: picks, isCut } = dispatcher.pickBacklogs(maxPerClaim);
    isMore = isCut;
    if (picks.length === 0) return;
    const claimed = await store.claimBacklogs(
      clock.now(),
      picks.map(({ backlog: pick, limit }) => ({ domain: pick.domain, orgId: pick.orgId, limit })),
    );
    const counts = new Map<string, number>();
    for (const { domain, orgId } of claimed) {
      counts.set(`${orgId} ${domain}`, (counts.get(`${orgId} ${domain}`) ?? 0) + 1);
    }
    for (const { readyQueue: line, backlog: pick, limit } of picks) {
      if ((counts.get(`${pick.orgId} ${pick.domain}`) ?? 0) < limit) line.backlogs.remove(pick);
    }
    for (const delivery of claimed) arrive(delivery);
    if (claimed.length > 0) hungry();
  }

  /** That it could be claimed says that it had been given back, though the answer may have been lost. */
  function arrive(delivery: Delivery): void {
    returns.forget(delivery.id);
    dispatcher.addLeased(delivery);
  }

  /** What is done once a second: hear the operator and the other nodes, tell them, and now and then walk along the lanes. */
  async function tick(): Promise<void> {
    if (!hasPassed(tickedAt)) return;
    const now = clock.now();
    tickedAt = now;
    dispatcher.suspend(await store.suspensions(now));
    if (await store.readPools(now)) {
      dispatcher.recheckOwnership();
      lookout.scanSoon();
    }
    lookout.tick();
    await store.publish(dispatcher.readyQueues(), now);
    // What it has here is published by the time others are told that it has made room.
    await peers.exchange();
    dispatcher.mergePeerStates();
    dispatcher.forgetIdle();
  }

  /** A second since then; a clock that is set back stops nothing. */
  function hasPassed(time: number): boolean {
    return Math.abs(clock.now() - time) >= pollMs;
  }

  /** An outcome is kept at last: what was delivered must not be delivered again because the disk was full. */
  async function keep(delivery: Delivery, attempt: Attempt): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        const nextAt = await parts.record(delivery, attempt);
        leases.end(delivery);
        if (nextAt !== null) alarm(nextAt);
        return;
      } catch (error) {
        const what = `the outcome of delivery ${delivery.id} cannot be recorded; trying again until it can`;
        if (tries === 0) parts.onError(what, error);
        if (cutShort.signal.aborted) return;
        await pause(clock, pollMs, cutShort.signal);
      }
    }
  }

  async function recover(which: 'own' | 'expired'): Promise<void> {
    let deliveries: Delivery[];
    do {
      deliveries = await store.takeBack(which);
      for (const delivery of deliveries) leases.begin(delivery);
      await Promise.all(deliveries.map((delivery) => keep(delivery, parts.interrupted(delivery))));
    } while (deliveries.length > 0);
  }

  return {
    async start() {
      await store.readPools(clock.now());
      await recover('own');
      await peers.exchange();
      leases.start();
      wake();
    },
    wake,
    noteBacklog: (lane) => {
      if (!stopping) noteBacklog(lane);
    },
    admit: dispatcher.admit,
    async stop(graceMs) {
      stopping = true;
      cancelAlarm();
      const timer = setTimeout(() => cutShort.abort(), graceMs);
      const landed = dispatcher.stop();
      await looking;
      await landed;
      clearTimeout(timer);
      await lookout.stop();
      await returns.done();
      await leases.stop();
      await peers.leave();
    },
  };
}
