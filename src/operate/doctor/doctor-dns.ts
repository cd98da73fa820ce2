/**
 * DNS as the checks ask it: each question once, whoever asks, in a bounded time, and of servers that are known to
 * answer. Where none does, every question fails at once, so that a machine without a network has its findings soon.
 *
 * Three answers, as everywhere: records, none, don't know; the last one is thrown as Unanswered.
 */
import { getServers } from 'node:dns';
import { createResolver, type Resolve } from '../../route/resolver.ts';

/** DNS did not say; `isSilence`: because no server answers at all, so that it says nothing about the name. */
export class Unanswered extends Error {
  readonly isSilence: boolean;
  /** For libraries, which look at it. */
  readonly code: string;

  constructor(message: string, code: string, isSilence = false) {
    super(message);
    this.code = code;
    this.isSilence = isSilence;
  }
}

export interface ServerState {
  server: string;
  /** Null: it answers. */
  trouble: string | null;
}

export interface Dns {
  /** As libraries want it: rejects with ENODATA or ENOTFOUND where there is nothing, else with Unanswered. */
  resolve: Resolve;
  /** The same with nothing as an empty list. */
  records<T>(name: string, type: string): Promise<T[]>;
  /** A and AAAA. */
  addresses(name: string): Promise<string[]>;
  servers(): Promise<ServerState[]>;
}

interface DnsParts {
  /** `host:port` each; none means the system's. */
  servers: string[];
  /** Something that is there, to see who answers. */
  probe: string;
  timeoutMs: number;
}

const tries = 2;

export function createDns({ servers, probe, timeoutMs }: DnsParts): Dns {
  const resolver = (some: string[]) => createResolver(some, { timeoutMs: timeoutMs / tries, tries });
  const asked = new Map<string, Promise<unknown[]>>();
  const states = Promise.all(
    (servers.length > 0 ? servers : getServers()).map(async (server) => ({
      server,
      trouble: await troubleOf(resolver([server])(probe, 'MX')),
    })),
  );
  const working = states.then((all) => {
    const good = all.filter(({ trouble }) => trouble === null);
    return good.length > 0 ? resolver(good.map(({ server }) => server)) : null;
  });

  async function ask(name: string, type: string): Promise<unknown[]> {
    const resolve = await working;
    if (resolve !== null) return resolve(name, type);
    const names = (await states).map(({ server }) => server).join(', ');
    throw new Unanswered(`no answer from DNS server ${names}`, 'ETIMEOUT', true);
  }

  function once(name: string, type: string): Promise<unknown[]> {
    const question = `${type} ${name.toLowerCase()}`;
    const known = asked.get(question);
    if (known) return known;
    const answer = ask(name, type);
    asked.set(question, answer);
    return answer;
  }

  /** An error of its own for each who asks, since libraries write into them. */
  const resolve: Resolve = async (name, type = 'A') => {
    try {
      return [...(await once(name, type))];
    } catch (error) {
      const { message, code = 'EFAILED' } = error as NodeJS.ErrnoException;
      if (isNothing(error)) throw Object.assign(new Error(message), { code });
      if (error instanceof Unanswered) throw new Unanswered(message, code, error.isSilence);
      throw new Unanswered(`DNS has no answer for ${name} ${type} (${saidBy(code)})`, code);
    }
  };

  async function records<T>(name: string, type: string): Promise<T[]> {
    try {
      return (await resolve(name, type)) as T[];
    } catch (error) {
      if (isNothing(error)) return [];
      throw error;
    }
  }

  return {
    resolve,
    records,
    async addresses(name) {
      const found = await Promise.all(['A', 'AAAA'].map((type) => records<string>(name, type)));
      return found.flat();
    },
    servers: () => states,
  };
}

async function troubleOf(answer: Promise<unknown>): Promise<string | null> {
  try {
    await answer;
    return null;
  } catch (error) {
    return isNothing(error) ? null : saidBy((error as NodeJS.ErrnoException).code ?? 'EFAILED');
  }
}

/** EBADNAME: one that DNS cannot even be asked for. */
function isNothing(error: unknown): boolean {
  return ['ENODATA', 'ENOTFOUND', 'EBADNAME'].includes((error as NodeJS.ErrnoException).code ?? '');
}

const words: Record<string, string> = {
  ETIMEOUT: 'it is silent',
  ECONNREFUSED: 'nothing listens there',
  ESERVFAIL: 'SERVFAIL',
  EREFUSED: 'REFUSED',
};

function saidBy(code: string): string {
  return words[code] ?? code;
}
