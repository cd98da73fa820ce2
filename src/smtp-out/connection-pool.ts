/**
 * The sockets of every destination: who may open one, and the sessions that wait for their next mail.
 *
 * A destination never has more sockets than its shape's `connections`, idle ones and those being closed included: at
 * that number an idle one is closed and its end awaited before another is dialed. A session waits `idleMs` for its
 * next mail, and carries `mailsPerConnection` of them. What ends while it waits is forgotten.
 *
 * Owns no policy: which session suits a mail is asked of the caller, the best first.
 */
import { orAborted } from '../base/abort.ts';
import type { Destination, DestinationShape } from '../mail/destination-shape.ts';
import type { Session } from './session.ts';

/** The right to one socket; called, it is given back. That is when the socket is gone. */
export type Permit = () => void;

export interface ConnectionPool {
  /**
   * An idle session that one of `suits` accepts, tried in their order; else a permit to dial, which may have to be
   * waited for. Rejects when stopped.
   */
  acquire(
    destination: Destination,
    suits: ((session: Session) => boolean)[],
    stopped: AbortSignal,
  ): Promise<{ session: Session } | { permit: Permit }>;
  /** A session that has carried a mail: kept for the next where it is clean. */
  giveBack(destination: Destination, session: Session): Promise<void>;
  stats(destination: string): { open: number; idle: number };
  /** Of all destinations; busy: those that are being opened or closed too. */
  totals(): { busy: number; idle: number };
  /** Ends the idle ones, politely and within a second. */
  endIdle(): Promise<void>;
  /** Ends them, and keeps none from now on. */
  close(): Promise<void>;
}

interface ConnectionKey {
  /** Sockets, or permits to open one. */
  open: number;
  closing: number;
  /** The newest last: it is taken first, so that the others lapse. */
  idle: Session[];
  /** Told of every change. */
  waiting: Set<() => void>;
}

export function createConnectionPool(): ConnectionPool {
  const lanes = new Map<string, ConnectionKey>();
  const lapses = new Map<Session, NodeJS.Timeout>();
  let isClosed = false;

  function connectionKeyOf(name: string): ConnectionKey {
    const lane = lanes.get(name) ?? { open: 0, closing: 0, idle: [], waiting: new Set() };
    lanes.set(name, lane);
    return lane;
  }

  function changed(name: string, lane: ConnectionKey): void {
    for (const tell of lane.waiting) tell();
    if (lane.open === 0 && lane.waiting.size === 0) lanes.delete(name);
  }

  /** A session leaves the idle ones; false where it was none of them. */
  function take(lane: ConnectionKey, session: Session): boolean {
    const at = lane.idle.indexOf(session);
    if (at < 0) return false;
    lane.idle.splice(at, 1);
    clearTimeout(lapses.get(session));
    lapses.delete(session);
    session.onEnd(() => {});
    return true;
  }

  function end(lane: ConnectionKey, session: Session): void {
    lane.closing++;
    session.quit().then(() => lane.closing--);
  }

  function permitOf(name: string, lane: ConnectionKey): Permit {
    let isHeld = true;
    lane.open++;
    return () => {
      if (isHeld) lane.open--;
      isHeld = false;
      changed(name, lane);
    };
  }

  function takeSuitable(lane: ConnectionKey, suits: ((session: Session) => boolean)[]): Session | null {
    for (const suit of suits) {
      const session = lane.idle.findLast((one) => one.isAlive && suit(one));
      if (session && take(lane, session)) return session;
    }
    return null;
  }

  function rest(name: string, lane: ConnectionKey, session: Session, { idleMs }: DestinationShape): void {
    lane.idle.push(session);
    const lapse = () => take(lane, session) && end(lane, session);
    lapses.set(session, setTimeout(lapse, idleMs).unref());
    session.onEnd(() => {
      if (take(lane, session)) end(lane, session);
    });
    changed(name, lane);
  }

  async function endIdle(): Promise<void> {
    const ends = [...lanes.values()].flatMap((lane) =>
      [...lane.idle].map((session) => {
        take(lane, session);
        return session.quit();
      }),
    );
    await Promise.all(ends);
  }

  return {
    async acquire({ name, shape }, suits, stopped) {
      for (;;) {
        const lane = connectionKeyOf(name);
        const session = takeSuitable(lane, suits);
        if (session) return { session };
        if (lane.open < shape.connections) return { permit: permitOf(name, lane) };
        // Somebody else's session is in the way; each who waits has one end.
        const oldest = lane.closing <= lane.waiting.size ? lane.idle[0] : undefined;
        if (oldest && take(lane, oldest)) end(lane, oldest);
        await change(lane, stopped);
      }
    },
    async giveBack({ name, shape }, session) {
      const lane = connectionKeyOf(name);
      // Said at once, so that nobody ends another session to make room.
      if (!session.isAlive) return end(lane, session);
      const isClean = await session.tidy();
      const isSpent = session.mails >= shape.mailsPerConnection || shape.idleMs <= 0;
      if (isClean && !isSpent && !isClosed) rest(name, lane, session, shape);
      else end(lane, session);
    },
    stats(name) {
      const lane = lanes.get(name);
      return { open: lane?.open ?? 0, idle: lane?.idle.length ?? 0 };
    },
    totals() {
      let [open, idle] = [0, 0];
      for (const lane of lanes.values()) {
        open += lane.open;
        idle += lane.idle.length;
      }
      return { busy: open - idle, idle };
    },
    endIdle,
    close() {
      isClosed = true;
      return endIdle();
    },
  };
}

function change(lane: ConnectionKey, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  lane.waiting.add(resolve);
  return orAborted(promise, stopped).finally(() => lane.waiting.delete(resolve));
}
