/** What several checks need, found out once: DNS, what the knocks at port 25 brought, our addresses, the domains. */

import { withTimeout } from '../../base/with-timeout.ts';
import type { Config } from '../../config.ts';
import { type DomainRecord, listSenderDomains } from '../../db/accounts/domains-table.ts';
import type { Db } from '../../db/engine/open.ts';
import { isForbidden } from '../../vendor/mx-connect.ts';
import type { OpenDb } from './checks/database.ts';
import { createDns, type Dns } from './doctor-dns.ts';
import {
  type Knock,
  knockFrom,
  type Origin,
  originsOf,
  type SendingAddress,
  sendersOf,
} from './sending-addresses.ts';
import type { Surroundings } from './surroundings.ts';

export interface SharedFacts {
  config: Config;
  surroundings: Surroundings;
  now(): number;
  dns: Dns;
  openDb: OpenDb;
  /** The one asked for; null: all that are verified. */
  domain: string | null;
  /** Each end of ours; `knocks` rejects where DNS is silent. */
  origins: { origin: Origin; knocks: Promise<Knock[]> }[];
  /** Never rejects; empty: nobody could tell. */
  senders: Promise<SendingAddress[]>;
  /** Every address that may be this machine's. */
  ours: Promise<string[]>;
  /** One more than are looked at, where there are more. */
  domains: Promise<DomainRecord[]>;
}

export const maxDomains = 50;

type Given = Pick<SharedFacts, 'config' | 'surroundings' | 'now' | 'openDb' | 'domain'>;

export function createSharedFacts(given: Given): SharedFacts {
  const { config, surroundings, domain } = given;
  const { patience } = surroundings;
  const dns = createDns({
    servers: config.dnsServers,
    probe: surroundings.probes[0]!,
    timeoutMs: patience.dns,
  });
  const opened = openWithin(patience.database, given.openDb);
  const openDb = () => opened;
  const origins = originsOf(config).map((origin) => {
    const knocks = knockFrom(origin, { config, dns, surroundings });
    knocks.catch(() => {});
    return { origin, knocks };
  });
  const senders = findSenders({ config, dns, origins });
  const domains = opened.then((db) => (db === null ? [] : listSenderDomains(db, domain, maxDomains + 1)));
  domains.catch(() => {});
  return {
    ...given,
    dns,
    openDb,
    origins,
    senders,
    ours: findOurs(senders, { config, dns, surroundings }),
    domains,
  };
}

async function findSenders({
  config,
  dns,
  origins,
}: Pick<SharedFacts, 'config' | 'dns' | 'origins'>): Promise<SendingAddress[]> {
  const knocked = await Promise.all(
    origins.map(async ({ origin, knocks }) => ({ origin, knocks: await knocks.catch((): Knock[] => []) })),
  );
  return sendersOf(knocked, { config, dns });
}

async function findOurs(
  senders: Promise<SendingAddress[]>,
  { config, dns, surroundings }: Pick<SharedFacts, 'config' | 'dns' | 'surroundings'>,
): Promise<string[]> {
  const named = dns.addresses(config.hostname).catch((): string[] => []);
  const seen = (await senders).map(({ address }) => address);
  const all = [...seen, ...(await named), ...surroundings.ownAddresses()];
  // A name that leads to loopback leads every other machine to itself.
  return all.filter((address) => !isForbidden(address, config.mtaAllowPrivate));
}

/** The drivers have more patience than whoever waits for the doctor. */
async function openWithin(timeoutMs: number, openDb: OpenDb): Promise<Db | null> {
  const late = Symbol();
  const opened = await withTimeout<Db | null | typeof late>(timeoutMs, openDb(), () => late);
  if (opened !== late) return opened;
  throw new Error(
    `the database did not answer within ${timeoutMs / 1000} s; check POSTERN_DATABASE_URL and that the database is running`,
  );
}
