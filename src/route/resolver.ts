/**
 * DNS as this program asks it: the operator's servers where set, else the system's.
 * Answers come as mx-connect and mailauth want them; a name without such records rejects with ENODATA or ENOTFOUND,
 * everything that is not an answer with another code.
 *
 * The system's servers can change while we run (a network that comes up late, a lease renewed elsewhere), and a Resolver
 * reads them once. So where one does not answer they are read again, for the questions that come after.
 */
import type { ResolverOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';

/** `(name, type)` to records, in the forms of node:dns. */
export type Resolve = (name: string, type?: string) => Promise<unknown[]>;

const defaultTimeouts = { timeoutMs: 3000, tries: 2 };
/** Of the real clock; names that nobody answers for are asked all the time. */
const readRetryDelayMs = 10_000;
const answers = ['ENODATA', 'ENOTFOUND'];

/** `servers`: `host:port` each; none means the system's, which `openSystem` reads. */
export function createResolver(
  servers: string[],
  { timeoutMs, tries } = defaultTimeouts,
  openSystem = (options: ResolverOptions) => new Resolver(options),
): Resolve {
  const options = { timeout: timeoutMs, tries };
  const ask = (resolver: Resolver, name: string, type: string) =>
    resolver.resolve(name, type) as unknown as Promise<unknown[]>;
  if (servers.length > 0) {
    const resolver = new Resolver(options);
    resolver.setServers(servers);
    return (name, type = 'A') => ask(resolver, name, type);
  }
  let system = openSystem(options);
  let readAt = Number.NEGATIVE_INFINITY;
  return async (name, type = 'A') => {
    try {
      return await ask(system, name, type);
    } catch (error) {
      const isAnswer = answers.includes((error as NodeJS.ErrnoException).code ?? '');
      if (!isAnswer && performance.now() - readAt >= readRetryDelayMs) {
        system = openSystem(options);
        readAt = performance.now();
      }
      throw error;
    }
  };
}
