/**
 * The DNS resolver: the servers of the settings, or if there are none, the system's. Answers have the form that mx-connect
 * and mailauth expect. If a name has no such records, it rejects with ENODATA or ENOTFOUND; if the answer is unknown, with
 * another code.
 *
 * The system's servers may change while the process runs (a network that comes up late, a new DHCP lease), but a Resolver
 * reads them only once. So after a failure they are read again, for later queries.
 */

import { CANCELLED, type ResolverOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isNoRecord, type Resolve } from '#platform/base/net/resolve.ts';

export const defaultTimeouts = { timeoutMs: 3000, tries: 2 };
/** Minimum time between two readings, by the real clock: some names never get an answer. */
const readRetryDelayMs = 10_000;

/**
 * `servers`: each `host:port`; if empty, the system's, which `openSystem` reads. When `stopping` aborts, what is looked up has no
 * answer: a stranger's DNS may be silent for nine seconds, and the service has five.
 */
export function createResolver(
  servers: string[],
  {
    timeoutMs,
    tries,
    stopping,
  }: { timeoutMs: number; tries: number; stopping?: AbortSignal } = defaultTimeouts,
  openSystem = (options: ResolverOptions) => new Resolver(options),
): Resolve {
  const options = { timeout: timeoutMs, tries };
  const ask = async (resolver: Resolver, name: string, type: string) => {
    if (stopping?.aborted) throw Object.assign(new Error('the service stops'), { code: CANCELLED });
    return resolver.resolve(name, type) as unknown as Promise<unknown[]>;
  };
  if (servers.length > 0) {
    const resolver = new Resolver(options);
    resolver.setServers(servers);
    stopping?.addEventListener('abort', () => resolver.cancel(), { once: true });
    return (name, type = 'A') => ask(resolver, name, type);
  }
  let system = openSystem(options);
  stopping?.addEventListener('abort', () => system.cancel(), { once: true });
  let readAt = Number.NEGATIVE_INFINITY;
  return async (name, type = 'A') => {
    try {
      return await ask(system, name, type);
    } catch (error) {
      if (!isNoRecord(error) && performance.now() - readAt >= readRetryDelayMs) {
        system = openSystem(options);
        readAt = performance.now();
      }
      throw error;
    }
  };
}
