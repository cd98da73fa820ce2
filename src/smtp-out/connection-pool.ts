/**
 * The connections to every destination: which delivery may open one, and the idle sessions that wait for another mail.
 *
 * A destination never has more sockets than its shape's `connections`, including idle ones and those being closed: at
 * the limit an idle session is closed, and its end awaited, before another socket is opened. A session stays idle for
 * `idleMs` at most and carries `mailsPerConnection` mails. A session that ends while idle is dropped.
 *
 * Holds no policy: the caller says which sessions suit a mail, in order of preference.
 */
import { orAborted } from '../base/abort.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Session } from './session.ts';

/** Permission to open one socket. Calling it gives the permission back, once the socket is gone. */
export type Permit = () => void;

type Suits = (session: Session) => boolean;

interface ConnectionKey {
  name: string;
  /** Sockets, and permits to open one. */
  open: number;
  closing: number;
  /** The newest last. It is taken first, so that the others reach their idle timeout. */
  idle: { session: Session; timer: NodeJS.Timeout }[];
  /** Called at every change. */
  waiting: Set<() => void>;
}

export class ConnectionPool {
  readonly #keys = new Map<string, ConnectionKey>();
  #isClosed = false;

  /**
   * An idle session that one of `suits` accepts, tried in their order; else a permit to open a socket, when one is
   * available. Rejects when stopped.
   */
  async acquire(
    { name, shape }: Destination,
    suits: Suits[],
    stopped: AbortSignal,
  ): Promise<{ session: Session } | { permit: Permit }> {
    for (;;) {
      const key = this.#keyOf(name);
      const session = takeSuitable(key, suits);
      if (session) return { session };
      if (key.open < shape.connections) return { permit: this.#permitOf(key) };
      // Every waiting caller has one unsuitable idle session closed.
      const oldest = key.closing <= key.waiting.size ? key.idle[0]?.session : undefined;
      if (oldest && take(key, oldest)) end(key, oldest);
      await change(key, stopped);
    }
  }

  /** After a mail: keeps the session for the next mail if it is clean, else ends it. */
  async giveBack({ name, shape }: Destination, session: Session): Promise<void> {
    const key = this.#keyOf(name);
    // Counted as closing at once, so that no caller has another session closed as well.
    if (!session.isAlive) return end(key, session);
    const isClean = await session.tidy();
    const isSpent = session.mails >= shape.mailsPerConnection || shape.idleMs <= 0;
    if (isClean && !isSpent && !this.#isClosed) this.#keep(key, session, shape.idleMs);
    else end(key, session);
  }

  stats(destination: string): { open: number; idle: number } {
    const key = this.#keys.get(destination);
    return { open: key?.open ?? 0, idle: key?.idle.length ?? 0 };
  }

  /** The numbers for all destinations. `busy` includes connections that are being opened or closed. */
  totals(): { busy: number; idle: number } {
    let open = 0;
    let idle = 0;
    for (const key of this.#keys.values()) {
      open += key.open;
      idle += key.idle.length;
    }
    return { busy: open - idle, idle };
  }

  /** Ends the idle sessions with QUIT, within a second. */
  async endIdle(): Promise<void> {
    const ends = [...this.#keys.values()].flatMap((key) =>
      key.idle
        .map(({ session }) => session)
        .map((session) => {
          take(key, session);
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

  #keyOf(name: string): ConnectionKey {
    const key = this.#keys.get(name) ?? { name, open: 0, closing: 0, idle: [], waiting: new Set() };
    this.#keys.set(name, key);
    return key;
  }

  #permitOf(key: ConnectionKey): Permit {
    let isHeld = true;
    key.open++;
    return () => {
      if (isHeld) key.open--;
      isHeld = false;
      this.#changed(key);
    };
  }

  #keep(key: ConnectionKey, session: Session, idleMs: number): void {
    const drop = () => {
      if (take(key, session)) end(key, session);
    };
    key.idle.push({ session, timer: setTimeout(drop, idleMs).unref() });
    session.onEnd(drop);
    this.#changed(key);
  }

  #changed(key: ConnectionKey): void {
    for (const wake of key.waiting) wake();
    if (key.open === 0 && key.waiting.size === 0) this.#keys.delete(key.name);
  }
}

function takeSuitable(key: ConnectionKey, suits: Suits[]): Session | null {
  for (const suit of suits) {
    const found = key.idle.findLast(({ session }) => session.isAlive && suit(session));
    if (found && take(key, found.session)) return found.session;
  }
  return null;
}

/** Removes a session from the idle ones; false if it is not one of them. */
function take(key: ConnectionKey, session: Session): boolean {
  const at = key.idle.findIndex((one) => one.session === session);
  if (at < 0) return false;
  const [taken] = key.idle.splice(at, 1);
  clearTimeout(taken!.timer);
  session.onEnd(() => {});
  return true;
}

function end(key: ConnectionKey, session: Session): void {
  key.closing++;
  session.quit().then(() => key.closing--);
}

function change(key: ConnectionKey, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  key.waiting.add(resolve);
  return orAborted(promise, stopped).finally(() => key.waiting.delete(resolve));
}
