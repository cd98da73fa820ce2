/**
 * Hosts of customers lead to this server for their tracking links and policies, and are the customers' to point elsewhere: pages,
 * the API and its documents are not served at them. Requests at the server's own names are not looked at; other names are looked
 * up in a list that is read when one comes, at most every ten seconds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { listTrackingHosts, type TrackingHost } from '#accounts/rows/domains-table.ts';
import { hostOf } from '#operate/certificates/web-ports.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface CustomerHostsParts {
  db: Db;
  hostname: string;
  baseUrl(): string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const readIntervalMs = 10_000;

export class CustomerHosts {
  readonly #parts: CustomerHostsParts;
  #hosts = new Map<string, TrackingHost>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(parts: CustomerHostsParts) {
    this.#parts = parts;
  }

  /** Null: the host is not a tracking host. Known after `serve` has seen a request at this host. */
  ownersOf(host: string): readonly string[] | null {
    return this.#isServers(host) ? null : (this.#hosts.get(host)?.owners ?? null);
  }

  serve(next: Handler): Handler {
    return async (request, response) => {
      const host = hostOf(request);
      if (this.#isServers(host)) return next(request, response);
      await this.#refresh();
      // A host outside of the customer's own domains may be another name of this server.
      if (!this.#hosts.get(host)?.isOwnDomain || /^\/(?:t|\.well-known)\//.test(request.url!))
        return next(request, response);
      // RFC 9110 section 15.5.20. The rest of an unread body would be parsed as the next request.
      if (!request.complete) response.setHeader('Connection', 'close');
      response.writeHead(421, { 'Content-Type': 'text/plain; charset=utf-8' });
      response.end('This host serves tracking links only.\n');
    };
  }

  #isServers(host: string): boolean {
    const { hostname, baseUrl } = this.#parts;
    return host === hostname || !host.includes('.') || isIP(host) > 0 || host === new URL(baseUrl()).hostname;
  }

  async #refresh(): Promise<void> {
    const { db, clock, onError } = this.#parts;
    if (isRecent(this.#readAt, clock.now(), readIntervalMs)) return;
    this.#reading ??= listTrackingHosts(db)
      .then((hosts) => {
        this.#hosts = hosts;
        this.#readAt = clock.now();
      })
      .catch((error) => onError("the customers' hosts cannot be read; those read before stay known", error))
      .finally(() => {
        this.#reading = null;
      });
    await this.#reading;
  }
}
