/**
 * Counts a submitted mail as a request of its organization, and waits for the next second if this one's requests are used up:
 * programs without a queue of their own lose a mail that is refused. What would wait longer than a minute, or for the next
 * day, is refused.
 *
 * Each organization has a line of its own, in order of arrival, so it delays nobody else. A wait holds a connection and nothing
 * else, and ends with it.
 */

import { bindingWindow, overLimit, type RequestLimits, type Taken } from '#accounts/limits.ts';
import type { Clock } from '#platform/base/clock.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import { SmtpRefusal } from '#platform/values/mail-handler.ts';
import { Refusal } from '#platform/values/refusal.ts';

export interface RequestWaitParts {
  /** Counts a request of the organization. */
  take(orgId: string, limits: RequestLimits): Promise<Taken>;
  clock: Clock;
  /** In all. An organization may have as many as are free beside its own: half if it is alone. */
  maxWaiting: number;
}

interface Waiting {
  limits: RequestLimits;
  /** Without an error: the request is counted. */
  end(error?: unknown): void;
}

/** Clients wait at least five minutes for the reply to MAIL (RFC 5321 section 4.5.3.2.2), but some only one. */
const maxWaitMs = 60_000;

export class RequestWait {
  readonly #parts: RequestWaitParts;
  readonly #lines = new Map<string, Set<Waiting>>();
  readonly #slots: Slots;

  constructor(parts: RequestWaitParts) {
    this.#parts = parts;
    this.#slots = new Slots({ inAll: Math.ceil(parts.maxWaiting), ofOne: 'as many as are free' });
  }

  /** Resolves when the request is counted. `ending`: the connection ends, or the server stops. */
  async count(orgId: string, limits: RequestLimits, ending: AbortSignal): Promise<void> {
    if (limits.perSecond === null && limits.perDay === null) return;
    if (!this.#lines.has(orgId)) {
      const { allowed, windows } = await this.#parts.take(orgId, limits);
      if (allowed) return;
      if (bindingWindow(windows)!.name === 'day') throw overLimit(windows);
    }
    await this.#wait(orgId, limits, ending);
  }

  #wait(orgId: string, limits: RequestLimits, ending: AbortSignal): Promise<void> {
    const line = this.#lines.get(orgId) ?? new Set();
    const perSecond = limits.perSecond ?? 0;
    const isLong = (line.size + 1) * 1000 > perSecond * maxWaitMs;
    if (ending.aborted) throw stopping();
    const free = isLong ? 'of one' : this.#slots.take(orgId);
    if (typeof free !== 'function') throw tooMany(perSecond, line.size);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        limits,
        end: (error) => {
          if (!line.delete(waiting)) return;
          free();
          cancel();
          ending.removeEventListener('abort', onEnding);
          if (error) reject(error);
          else resolve();
        },
      };
      const onEnding = () => waiting.end(stopping());
      const cancel = this.#parts.clock.after(maxWaitMs, () => waiting.end(tooMany(perSecond, line.size)));
      ending.addEventListener('abort', onEnding);
      line.add(waiting);
      if (this.#lines.has(orgId)) return;
      this.#lines.set(orgId, line);
      void this.#serve(orgId, line);
    });
  }

  /** Counts the line's requests as its windows open, until nobody waits. */
  async #serve(orgId: string, line: Set<Waiting>): Promise<void> {
    try {
      for (let [first] = line; first; [first] = line) await this.#serveWindow(orgId, line, first.limits);
    } catch (error) {
      for (const waiting of line) waiting.end(error);
    } finally {
      this.#lines.delete(orgId);
    }
  }

  async #serveWindow(orgId: string, line: Set<Waiting>, limits: RequestLimits): Promise<void> {
    const { take, clock } = this.#parts;
    const count = Math.min(line.size, limits.perSecond ?? 1);
    const all = await Promise.all(Array.from({ length: count }, () => take(orgId, limits)));
    for (const { allowed } of all) {
      const [next] = line;
      if (allowed) next?.end();
    }
    const refused = all.find(({ allowed }) => !allowed);
    if (!refused) return;
    const window = bindingWindow(refused.windows)!;
    if (window.name === 'day') throw overLimit(refused.windows);
    await new Promise<void>((resolve) => void clock.after(window.resetMs, resolve));
  }
}

function tooMany(perSecond: number, waiting: number): Refusal {
  const message = `This organization may make ${perSecond} requests a second, and ${waiting} other mails wait for their turn.`;
  return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: maxWaitMs });
}

function stopping(): SmtpRefusal {
  return new SmtpRefusal(421, '4.3.2', 'The server is shutting down. Retry later.');
}
