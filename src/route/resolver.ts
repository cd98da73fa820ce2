/**
 * DNS as this program asks it: the operator's servers where set, else the system's.
 * Answers come as mx-connect and mailauth want them; a name without such records rejects with ENODATA or ENOTFOUND,
 * everything that is not an answer with another code.
 */
import { Resolver } from 'node:dns/promises';

/** `(name, type)` to records, in the forms of node:dns. */
export type Resolve = (name: string, type?: string) => Promise<unknown[]>;

const usualPatience = { timeoutMs: 3000, tries: 2 };

/** `servers`: `host:port` each; none means the system's. */
export function createResolver(servers: string[], { timeoutMs, tries } = usualPatience): Resolve {
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (servers.length > 0) resolver.setServers(servers);
  return (name, type = 'A') => resolver.resolve(name, type) as unknown as Promise<unknown[]>;
}
