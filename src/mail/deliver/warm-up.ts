/**
 * Keeps the mail of new source addresses within their plan (mail/deliver/warm-up-plan.ts): says before each attempt which
 * addresses of the IP pool may send to this group of receivers now, or else until when the mail waits.
 *
 * A part of the day's allowance is taken in the database before it is used, many mails' at a time. So neither a restart nor several
 * nodes with one address send more than the plan, and a mail costs no statement. Mail that must wait is put off by its due time, to
 * the day that has room for it after those put off before it, but never into the last eighth of its time: then it goes over the
 * plan. The only address of its family holds nothing back: its mail is counted in memory, stored every ten seconds, and the status
 * warns.
 *
 * If several organizations send, the last eighth of the allowance is for those that have sent little, so that one's newsletter does
 * not put off another's receipts for a day.
 *
 * BUGS: what a process had taken and not used when it crashed is lost for that day, and mail that it had not stored is not counted.
 * How much mail is put off to which day is forgotten by a restart; mail that finds its day full is put off once more.
 */
import { isIPv6 } from 'node:net';
import { type ReceiverGroup, receiverGroupOf } from '#mail/deliver/receivers.ts';
import type { Allowance } from '#mail/deliver/route/source-addresses.ts';
import {
  allowanceOf,
  dayMs,
  endOf,
  isWarm,
  reserveOf,
  roomAfter,
  type WarmUp,
  warm,
} from '#mail/deliver/warm-up-plan.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { CountedMap } from '#platform/base/limits/counted-map.ts';
import type { Delivery, Signal, Verdict } from '#platform/values/glossary.ts';
import { isTestMail } from '#platform/values/test-route.ts';

/** Of an address and a group of receivers. */
export interface StoredWarmUp extends WarmUp {
  address: string;
  receivers: ReceiverGroup;
}

export interface Taking {
  address: string;
  receivers: ReceiverGroup;
  /** How much of the allowance is wanted. */
  want: number;
  /** The reserve is not taken. */
  leavesReserve: boolean;
  /** Mail that was sent beyond what had been taken. */
  over: number;
  deferred: number;
  /** Given back of what was taken on that day. */
  unused?: { day: number; count: number };
  /** The next day begins, if it is time. */
  mayBegin: boolean;
}

export interface WarmUpParts {
  sources: { address: string; pool: string }[];
  /** False: mail is only counted. */
  holds: boolean;
  /** The pool that mail over the allowance goes from, if any. */
  overflow: string | null;
  /** Addresses that need none of this, by the settings. */
  warmSources: readonly string[];
  /** What is known of addresses, and which have been in use for long. */
  load(): Promise<{ warmUps: StoredWarmUp[]; warmAddresses: string[] }>;
  /** Takes from the allowance, as much as there is. */
  take(taking: Taking): Promise<{ warmUp: WarmUp; granted: number }>;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

interface Leaving {
  pool: string;
  destination: string;
  /** The addresses of the destination's hosts. */
  hosts: string[];
  /** Our addresses that were tried in vain. */
  except: ReadonlySet<string>;
}

/** Permission for one attempt. */
export interface Leave extends Allowance {
  pool: string;
  /** Other mail was quicker and used what was left of an address: there may be more. */
  wasLate(): boolean;
  /** The addresses that were taken. */
  tried: ReadonlySet<string>;
  /** A host answered to a mail from `address`. */
  note(address: string, verdict: Verdict, signal: Signal): void;
  /** What was not used is given back. */
  end(): void;
}

interface PutOff {
  waitMs: number;
}

interface Known {
  address: string;
  receivers: ReceiverGroup;
  /** Null until it has been read. */
  warmUp: WarmUp | null;
  /** Mail over the allowance is held back. */
  holds: boolean;
  /** What it takes is for organizations with little mail. */
  isReserve: boolean;
  /** Taken from the allowance, and not used. */
  taken: number;
  /** Not stored yet. */
  over: number;
  deferred: number;
  /** Nothing can be taken from then on, until then. */
  closed: { at: number; until: number } | null;
  storing: Promise<number> | null;
}

/** The allowance is taken in so many parts, but not in smaller ones than that. */
const partsOfAllowance = 50;
const minPart = 20;
/** Counts are stored so often. */
const storeMs = 10_000;
/** After a leap of the clock no day begins for so long: it is noticed within a second, and then moves the day. */
const steadyMs = 2_000;
const leapMs = 60_000;
/** The part of its time that a mail keeps for its attempts. */
const timeToTry = 1 / 8;

export class WarmUps {
  readonly #parts: WarmUpParts;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  /** By pool and receivers, the mail that is put off. */
  readonly #lines = new Map<string, { opensAt: number; length: number }>();
  readonly #warmAddresses: Set<string>;
  /** The mails of a UTC day by organization and receivers, and the organizations of this process. */
  #sent = { day: 0, counts: new CountedMap() };
  readonly #organizations = new Set<string>();
  #loaded: Promise<void> | null = null;
  #seenAt: number;
  #steadySince: number;
  #storedAt: number;

  constructor(parts: WarmUpParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#warmAddresses = new Set(parts.warmSources);
    this.#seenAt = parts.clock.now();
    this.#steadySince = this.#seenAt;
    this.#storedAt = this.#seenAt;
  }

  /** Called each second or so: notices leaps of the clock, and stores what was counted. */
  tick(): void {
    this.#noticeLeap();
    const now = this.#clock.now();
    if (isRecent(this.#storedAt, now, storeMs)) return;
    this.#storedAt = now;
    this.#storeCounts().catch((error) =>
      this.#parts.onError('mail from new source addresses is counted later', error),
    );
  }

  /** Null: from any address, and it is not counted. Never rejects. */
  async admit(delivery: Delivery, leaving: Leaving): Promise<Leave | PutOff | null> {
    if (isTestMail(delivery) || leaving.hosts.length === 0) return null;
    const { sources, overflow, onError } = this.#parts;
    const { pool } = leaving;
    const receivers = receiverGroupOf(leaving.destination);
    const sender = `${delivery.orgId} ${receivers}`;
    try {
      await this.#load();
      // The system chooses the address, which is seen when it is used.
      if (sources.length === 0) return this.#leave(receivers, pool, null);
      const own = this.#addresses(pool, receivers, leaving);
      if (own.every(isOpen)) return null;
      if (this.#organizations.size < 2) this.#organizations.add(delivery.orgId);
      const others = overflow === null ? [] : this.#addresses(overflow, receivers, leaving);
      const reserves = this.#sendsLittle(sender, own) ? own.map((known) => this.#reserveFor(known)) : [];
      const leave =
        (await this.#leaveFrom(pool, receivers, own)) ??
        (await this.#leaveFrom(overflow ?? pool, receivers, others)) ??
        (await this.#leaveFrom(pool, receivers, reserves));
      if (leave) this.#sentToday().add(sender, 1);
      return leave ?? this.#putOff(delivery, pool, receivers, own);
    } catch (error) {
      onError('the plan of new source addresses cannot be read; their mail waits', error);
      return { waitMs: steadyMs };
    }
  }

  /** Stores what is not stored yet, and gives back what is not used. */
  async close(): Promise<void> {
    for (const known of this.#known.values()) {
      await known.storing?.catch(() => {});
      const { over, deferred, taken: count, warmUp } = known;
      if (over + deferred + count === 0) continue;
      known.taken = 0;
      const unused = count > 0 ? { unused: { day: warmUp!.day, count } } : {};
      await this.#store(known, { want: 0, mayBegin: false, ...unused });
    }
  }

  #noticeLeap(): void {
    const now = this.#clock.now();
    if (!isRecent(this.#seenAt, now, leapMs)) this.#steadySince = now;
    this.#seenAt = now;
  }

  #isSteady = () => this.#clock.now() >= this.#steadySince + steadyMs;

  async #storeCounts(): Promise<void> {
    for (const known of this.#known.values()) {
      const isCounted = known.over + known.deferred > 0 && known.storing === null;
      if (isCounted) await this.#store(known, { want: 0, mayBegin: !known.holds && this.#isSteady() });
    }
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#parts.load().then(
      ({ warmUps, warmAddresses }) => {
        for (const address of warmAddresses) this.#warmAddresses.add(address);
        for (const { address, receivers, ...warmUp } of warmUps)
          this.#of(address, receivers).warmUp ??= warmUp;
      },
      (error) => {
        this.#loaded = null;
        throw error;
      },
    );
    return this.#loaded;
  }

  /** The addresses of the pool that can reach one of the hosts. */
  #addresses(pool: string, receivers: ReceiverGroup, { hosts, except }: Leaving): Known[] {
    const families = new Set(hosts.map(isIPv6));
    return this.#parts.sources
      .filter((source) => source.pool === pool && families.has(isIPv6(source.address)))
      .filter(({ address }) => !except.has(address))
      .map(({ address }) => this.#of(address, receivers));
  }

  #sentToday(): CountedMap {
    const day = Math.floor(this.#clock.now() / dayMs);
    if (day !== this.#sent.day) this.#sent = { day, counts: new CountedMap() };
    return this.#sent.counts;
  }

  #sendsLittle(sender: string, own: Known[]): boolean {
    if (this.#organizations.size < 2) return false;
    const allowance = own.reduce(
      (sum, { warmUp }) => sum + (warmUp === null ? 0 : allowanceOf(warmUp.step)),
      0,
    );
    return this.#sentToday().of(sender) < reserveOf(allowance) / 2;
  }

  #reserveFor({ address, receivers }: Known): Known {
    return this.#of(address, receivers, true);
  }

  #of(address: string, receivers: ReceiverGroup, isReserve = false): Known {
    const name = `${address} ${receivers} ${isReserve}`;
    const known = this.#known.get(name);
    if (known) return known;
    const { sources, holds } = this.#parts;
    const ofFamily = sources.filter((source) => isIPv6(source.address) === isIPv6(address));
    const added: Known = {
      address,
      receivers,
      warmUp: this.#warmAddresses.has(address) ? warm : null,
      holds: holds && ofFamily.length > 1,
      isReserve,
      taken: 0,
      over: 0,
      deferred: 0,
      closed: null,
      storing: null,
    };
    this.#known.set(name, added);
    return added;
  }

  /** Null if none of the addresses may be used now. */
  async #leaveFrom(pool: string, receivers: ReceiverGroup, addresses: Known[]): Promise<Leave | null> {
    await Promise.all(addresses.map((known) => this.#fill(known)));
    const usable = addresses.filter((known) => isFree(known) || known.taken > 0);
    if (usable.length > 0) return this.#leave(receivers, pool, usable);
    const mayHaveMore = addresses.some((known) => !this.#isClosed(known));
    return mayHaveMore ? this.#leaveFrom(pool, receivers, addresses) : null;
  }

  /** Afterwards the address is closed or has something taken, unless other mail was quicker. */
  async #fill(known: Known): Promise<void> {
    if (isFree(known)) return;
    // What is left of the day before is not for today.
    if (this.#isOver(known)) known.taken = 0;
    while (known.taken === 0 && !this.#isClosed(known)) await this.#take(known);
  }

  #isOver({ warmUp }: Known): boolean {
    return warmUp !== null && this.#clock.now() >= endOf(warmUp);
  }

  #isClosed({ closed }: Known): boolean {
    const now = this.#clock.now();
    return closed !== null && now >= closed.at && now < closed.until;
  }

  /** Takes a part of the allowance; if there is none, the address is closed until its next day. */
  async #take(known: Known): Promise<void> {
    if (known.storing) return void (await known.storing);
    this.#noticeLeap();
    const now = this.#clock.now();
    if (this.#isOver(known) && !this.#isSteady()) {
      known.closed = { at: now, until: this.#steadySince + steadyMs };
      return;
    }
    const granted = await this.#store(known, { want: partOf(known), mayBegin: true });
    if (granted > 0) return;
    known.closed = { at: now, until: Math.min(known.warmUp!.beganAt, now) + dayMs };
  }

  /** Must not be called while `storing`. */
  #store(known: Known, what: Pick<Taking, 'want' | 'mayBegin' | 'unused'>): Promise<number> {
    const store = async () => {
      const { address, receivers, over, deferred, isReserve } = known;
      const leavesReserve = !isReserve && this.#organizations.size > 1;
      const counted = { address, receivers, over, deferred, leavesReserve };
      const { warmUp, granted } = await this.#parts.take({ ...counted, ...what });
      known.warmUp = warmUp;
      known.over -= over;
      known.deferred -= deferred;
      known.taken += granted;
      return granted;
    };
    known.storing = store().finally(() => {
      known.storing = null;
    });
    return known.storing;
  }

  /** `usable`: null: any address. */
  #leave(receivers: ReceiverGroup, pool: string, usable: Known[] | null): Leave {
    /** Taken and not used, with the day. */
    const held = new Map<Known, number>();
    const tried = new Set<string>();
    let wasLate = false;
    const find = (address: string) => usable?.find((known) => known.address === address);
    return {
      pool,
      allows: (address) => usable === null || find(address) !== undefined,
      take: (address) => {
        const known = find(address);
        if (known === undefined) return usable === null;
        if (!isFree(known) && !held.has(known)) {
          if (known.taken === 0 || this.#isOver(known)) {
            wasLate = true;
            return false;
          }
          known.taken -= 1;
          held.set(known, known.warmUp!.day);
        }
        tried.add(address);
        return true;
      },
      wasLate: () => wasLate,
      tried,
      note: (address, verdict, signal) => {
        const known = this.#of(address, receivers);
        if (isOpen(known)) return;
        if (verdict.outcome === 'deferred' && !verdict.possibleDuplicate)
          known.deferred += Number(isAboutAddress(verdict, signal));
        else if (!held.delete(find(address) ?? known)) known.over += 1;
      },
      end: () => {
        for (const [known, day] of held) if (known.warmUp!.day === day) known.taken += 1;
      },
    };
  }

  #putOff(delivery: Delivery, pool: string, receivers: ReceiverGroup, own: Known[]): Leave | PutOff {
    const { createdAt, expiresAt, hasDeadline } = delivery;
    const lastAt = Math.round(expiresAt - (expiresAt - createdAt) * timeToTry);
    const now = this.#clock.now();
    if (now >= lastAt) return this.#leave(receivers, pool, null);
    const { until, line } = this.#dayWithRoom(`${pool} ${receivers}`, own, now);
    // Waiting until shortly before a deadline only makes the mail late.
    if (hasDeadline && until >= lastAt) return this.#leave(receivers, pool, null);
    line.length += 1;
    return { waitMs: Math.min(until, lastAt) - now };
  }

  #dayWithRoom(name: string, own: Known[], now: number): { until: number; line: { length: number } } {
    const opensAt = Math.min(...own.map(({ closed }) => closed?.until ?? now));
    const line = this.#lines.get(name) ?? { opensAt, length: 0 };
    if (opensAt <= now + steadyMs) return { until: now + steadyMs, line: { length: 0 } };
    this.#lines.set(name, line);
    const warmUps = own.flatMap(({ warmUp }) => warmUp ?? []);
    if (opensAt > line.opensAt) line.length = Math.max(line.length - roomAfter(warmUps, 0), 0);
    line.opensAt = opensAt;
    let place = line.length;
    let days = 1;
    const roomOn = () => roomAfter(warmUps, days) * (this.#organizations.size > 1 ? 7 / 8 : 1);
    for (let room = roomOn(); place >= room; room = roomOn()) {
      place -= room;
      days += 1;
    }
    return { until: opensAt + (days - 1) * dayMs, line };
  }
}

const isOpen = ({ warmUp }: Known) => warmUp !== null && isWarm(warmUp);

const isFree = (known: Known) => isOpen(known) || !known.holds;

function partOf({ warmUp, isReserve }: Known): number {
  const allowance = warmUp === null ? 0 : allowanceOf(warmUp.step);
  if (isReserve) return Math.max(Math.ceil(allowance / partsOfAllowance), 1);
  return Math.max(Math.ceil(allowance / partsOfAllowance), minPart);
}

const isAboutAddress = ({ category }: Verdict, signal: Signal) =>
  signal === 'throttled' || category === 'rate_limit' || category === 'blocked';
