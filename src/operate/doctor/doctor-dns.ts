/**
 * DNS for the checks: asks each question once, in a bounded time, and only servers that answer. If no server answers,
 * every question fails at once, so that the doctor finishes soon on a machine without a network.
 *
 * A question has one of three answers: records, none, or unknown, which is thrown as Unanswered.
 */

import { getServers } from 'node:dns';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';

/** DNS did not answer. `noServerAnswers`: not for any name, so it says nothing about this one. */
export class Unanswered extends Error {
  readonly noServerAnswers: boolean;
  /** Like the code of a DNS error of Node, because libraries read it. */
  readonly code: string;

  constructor(message: string, code: string, noServerAnswers = false) {
    super(message);
    this.code = code;
    this.noServerAnswers = noServerAnswers;
  }
}

export interface ServerState {
  server: string;
  /** Null if it answers. */
  error: string | null;
}

export interface Dns {
  /** The look-up for libraries: rejects with ENODATA or ENOTFOUND if there is no record, with Unanswered if DNS is silent. */
  resolve: Resolve;
  /** The same, but the list is empty if there is no record. */
  records<T>(name: string, type: string): Promise<T[]>;
  /** A and AAAA. */
  addresses(name: string): Promise<string[]>;
  servers(): Promise<ServerState[]>;
}

const tries = 2;

export function createDns(parts: {
  /** `host:port` each; empty means those of the system. */
  servers: string[];
  /** A domain with an MX record, to see which servers answer. */
  probe: string;
  timeoutMs: number;
}): Dns {
  const { servers, probe, timeoutMs } = parts;
  const resolver = (some: string[]) => createResolver(some, { timeoutMs: timeoutMs / tries, tries });
  const answers = new Map<string, Promise<unknown[]>>();
  const states = Promise.all(
    (servers.length > 0 ? servers : getServers()).map(async (server) => ({
      server,
      error: await errorOf(resolver([server])(probe, 'MX')),
    })),
  );
  const working = states.then((all) => {
    const good = all.filter(({ error }) => error === null);
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
    const answer = answers.get(question) ?? ask(name, type);
    answers.set(question, answer);
    return answer;
  }

  /** Each caller gets its own error object, because libraries modify them. */
  const resolve: Resolve = async (name, type = 'A') => {
    try {
      return [...(await once(name, type))];
    } catch (error) {
      const { message, code = 'EFAILED' } = error as NodeJS.ErrnoException;
      if (isNoRecord(error)) throw Object.assign(new Error(message), { code });
      if (error instanceof Unanswered) throw new Unanswered(message, code, error.noServerAnswers);
      throw new Unanswered(`DNS has no answer for ${name} ${type} (${describeCode(code)})`, code);
    }
  };

  async function records<T>(name: string, type: string): Promise<T[]> {
    try {
      return (await resolve(name, type)) as T[];
    } catch (error) {
      if (isNoRecord(error)) return [];
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

async function errorOf(answer: Promise<unknown>): Promise<string | null> {
  try {
    await answer;
    return null;
  } catch (error) {
    return isNoRecord(error) ? null : describeCode((error as NodeJS.ErrnoException).code ?? 'EFAILED');
  }
}

/** EBADNAME: the name is not valid in DNS. */
function isNoRecord(error: unknown): boolean {
  return ['ENODATA', 'ENOTFOUND', 'EBADNAME'].includes((error as NodeJS.ErrnoException).code ?? '');
}

const descriptions: Record<string, string> = {
  ETIMEOUT: 'it does not answer',
  ECONNREFUSED: 'nothing listens there',
  ESERVFAIL: 'SERVFAIL',
  EREFUSED: 'REFUSED',
};

function describeCode(code: string): string {
  return descriptions[code] ?? code;
}
