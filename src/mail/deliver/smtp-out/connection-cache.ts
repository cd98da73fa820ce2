/**
 * The connections to every destination: which delivery may open one, and the idle sessions that wait for another mail.
 *
 * A destination never has more sockets than its shape's `connections`, including idle ones and those being closed: at
 * the limit an idle session is closed, and its end awaited, before another socket is opened. A session stays idle for
 * `idleMs` at most and carries `mailsPerConnection` mails. A session that ends while idle is dropped.
 *
 * Holds no policy: the caller says which sessions suit a mail, in order of preference.
 */
import { orAborted } from '#platform/base/waits.ts';
import type { Destination } from '#platform/values/destination-shape.ts';
import type { SmtpSession } from './session.ts';

/** Permission to open one socket. Calling it gives the permission back, once the socket is gone. */
export type Permit = () => void;

type Suits = (session: SmtpSession) => boolean;

interface DestinationSockets {
  name: string;
  /** Sockets, and permits to open one. */
  open: number;
  closing: number;
  /** The newest last. It is taken first, so that the others reach their idle timeout. */
  idle: { session: SmtpSession; timer: NodeJS.Timeout }[];
  /** Called at every change. */
  waiting: Set<() => void>;
}

export class ConnectionCache {
  readonly #destinations = new Map<string, DestinationSockets>();
  #isClosed = false;

  /**
   * An idle session that one of `suits` accepts, tried in their order; else a permit to open a socket, when one is
   * available. Rejects when stopped.
   */
  async acquire(
    { name, shape }: Destination,
    suits: Suits[],
    stopped: AbortSignal,
  ): Promise<{ session: SmtpSession } | { permit: Permit }> {
    for (;;) {
      const sockets = this.#socketsOf(name);
      const session = takeSuitable(sockets, suits);
      if (session) return { session };
      if (sockets.open < shape.connections) return { permit: this.#permitOf(sockets) };
      // Every waiting caller has one unsuitable idle session closed.
      const oldest = sockets.closing <= sockets.waiting.size ? sockets.idle[0]?.session : undefined;
      if (oldest && take(sockets, oldest)) end(sockets, oldest);
      await change(sockets, stopped);
    }
  }

  /** After a mail: keeps the session for the next mail if it is clean, else ends it. */
  async giveBack({ name, shape }: Destination, session: SmtpSession): Promise<void> {
    const sockets = this.#socketsOf(name);
    // Counted as closing at once, so that no caller has another session closed as well.
    if (!session.isAlive) return end(sockets, session);
    const isClean = await session.tidy();
    const isSpent = session.mails >= shape.mailsPerConnection || shape.idleMs <= 0;
    if (isClean && !isSpent && !this.#isClosed) this.#keep(sockets, session, shape.idleMs);
    else end(sockets, session);
  }

  stats(destination: string): { open: number; idle: number } {
    const sockets = this.#destinations.get(destination);
    return { open: sockets?.open ?? 0, idle: sockets?.idle.length ?? 0 };
  }

  /** The numbers for all destinations. `busy` includes connections that are being opened or closed. */
  totals(): { busy: number; idle: number } {
    let open = 0;
    let idle = 0;
    for (const sockets of this.#destinations.values()) {
      open += sockets.open;
      idle += sockets.idle.length;
    }
    return { busy: open - idle, idle };
  }

  /** Ends the idle sessions with QUIT, within a second. */
  async endIdle(): Promise<void> {
    const ends = [...this.#destinations.values()].flatMap((sockets) =>
      sockets.idle
        .map(({ session }) => session)
        .map((session) => {
          take(sockets, session);
          return session.quit();
        }),
    );
    await Promise.all(ends);
  }

  /** Ends the idle sessions, and keeps none from now on. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.endIdle();
  }

  #socketsOf(name: string): DestinationSockets {
    const sockets = this.#destinations.get(name) ?? {
      name,
      open: 0,
      closing: 0,
      idle: [],
      waiting: new Set(),
    };
    this.#destinations.set(name, sockets);
    return sockets;
  }

  #permitOf(sockets: DestinationSockets): Permit {
    let isHeld = true;
    sockets.open++;
    return () => {
      if (isHeld) sockets.open--;
      isHeld = false;
      this.#changed(sockets);
    };
  }

  #keep(sockets: DestinationSockets, session: SmtpSession, idleMs: number): void {
    const drop = () => {
      if (take(sockets, session)) end(sockets, session);
    };
    sockets.idle.push({ session, timer: setTimeout(drop, idleMs).unref() });
    session.onEnd(drop);
    this.#changed(sockets);
  }

  #changed(sockets: DestinationSockets): void {
    for (const wake of sockets.waiting) wake();
    if (sockets.open === 0 && sockets.waiting.size === 0) this.#destinations.delete(sockets.name);
  }
}

function takeSuitable(sockets: DestinationSockets, suits: Suits[]): SmtpSession | null {
  for (const suit of suits) {
    const found = sockets.idle.findLast(({ session }) => session.isAlive && suit(session));
    if (found && take(sockets, found.session)) return found.session;
  }
  return null;
}

/** Removes a session from the idle ones; false if it is not one of them. */
function take(sockets: DestinationSockets, session: SmtpSession): boolean {
  const at = sockets.idle.findIndex((one) => one.session === session);
  if (at < 0) return false;
  const [taken] = sockets.idle.splice(at, 1);
  clearTimeout(taken!.timer);
  session.onEnd(() => {});
  return true;
}

function end(sockets: DestinationSockets, session: SmtpSession): void {
  sockets.closing++;
  session.quit().then(() => sockets.closing--);
}

function change(sockets: DestinationSockets, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  sockets.waiting.add(resolve);
  return orAborted(promise, stopped).finally(() => sockets.waiting.delete(resolve));
}
