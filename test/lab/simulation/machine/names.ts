/** The DNS of the simulated world, as node:dns answers it. A name, or a zone, can lie or be dead for a time. */
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import type { Random } from '../random.ts';
import { scheduler } from './scheduler.ts';

type Records = Record<string, unknown[]>;

/** What the DNS servers do with the questions about a name. */
export type NameBehavior = 'answers' | 'servfail' | 'silent' | 'no-such-name';

const codes = { servfail: 'ESERVFAIL', silent: 'ETIMEOUT', 'no-such-name': 'ENOTFOUND' } as const;
/** The resolver's timeout, twice, as mail/deliver/route/resolver.ts sets it. */
const silenceMs = 6_000;

export class Names {
  readonly #records = new Map<string, Records>();
  /** What is wrong; each returns null for the names that it does not concern. */
  readonly faults = new Set<(name: string) => NameBehavior | null>();
  questions = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  set(zone: Record<string, Records>): void {
    for (const [name, records] of Object.entries(zone)) this.#records.set(name, records);
  }

  ask(name: string, type: string, done: (error: Error | null, records?: unknown[]) => void): void {
    this.questions += 1;
    const asked = name.toLowerCase();
    const behavior = this.#behaviorOf(asked);
    const records = this.#records.get(asked);
    const found = records?.[type];
    const ms = behavior === 'silent' ? silenceMs : this.#random.between(1, 60);
    const code = behavior !== 'answers' ? codes[behavior] : found ? null : records ? 'ENODATA' : 'ENOTFOUND';
    const error = code && Object.assign(new Error(`query${type} ${code} ${name}`), { code, hostname: name });
    scheduler.after(ms, () => (error ? done(error) : done(null, found)));
  }

  #behaviorOf(name: string): NameBehavior {
    for (const fault of this.faults) {
      const behavior = fault(name);
      if (behavior) return behavior;
    }
    return 'answers';
  }

  /** Makes node:dns ask here. */
  replaceDns(): void {
    const ask = (name: string, type: string) =>
      new Promise((resolve, reject) => {
        this.ask(name, type, (error, records) => (error ? reject(error) : resolve(records)));
      });
    class Resolver {
      setServers() {}
      cancel() {}
      resolve(name: string, type = 'A') {
        return ask(name, type);
      }
    }
    Object.assign(dns.promises, { Resolver });
    // None on loopback, so that there is no resolver whose DNSSEC is trusted.
    Object.assign(dns, { getServers: () => ['192.0.2.53'] });
    syncBuiltinESMExports();
  }
}
