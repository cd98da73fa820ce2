/** The facts that several checks need, looked up once: DNS, the connections to port 25, our addresses, the sender domains. */

import { type DomainRecord, listSenderDomains } from '#accounts/rows/domains-table.ts';
import type { OpenDb } from '#operate/doctor/checks/database.ts';
import { isPublicAddress } from '#platform/base/net/client-network.ts';
import { withTimeout } from '#platform/base/waits.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { createDns, type Dns } from './doctor-dns.ts';
import {
  type Origin,
  originsOf,
  type ProbeResult,
  probeFrom,
  type SendingAddress,
  sendingAddressesOf,
} from './sending-addresses.ts';
import type { Surroundings } from './surroundings.ts';

export interface DoctorContext {
  config: Config;
  surroundings: Surroundings;
  now(): number;
  dns: Dns;
  openDb: OpenDb;
  /** The sender domain to check; null: all that are verified. */
  domain: string | null;
  /** `results` rejects if no DNS server answers. */
  origins: { origin: Origin; results: Promise<ProbeResult[]> }[];
  /** Never rejects; empty if unknown. */
  senders: Promise<SendingAddress[]>;
  /** Every address that may be this server's. */
  ownAddresses: Promise<string[]>;
  /** At most one more than are checked. */
  domains: Promise<DomainRecord[]>;
}

export const maxDomains = 50;

export type DoctorInputs = Pick<DoctorContext, 'config' | 'now' | 'openDb' | 'domain'>;

export function createDoctorContext(inputs: DoctorInputs, surroundings: Surroundings): DoctorContext {
  const { config, domain } = inputs;
  const { timeouts } = surroundings;
  const dns = createDns({
    servers: config.dnsServers,
    probe: surroundings.probes[0]!,
    timeoutMs: timeouts.dns,
  });
  const opened = openWithin(timeouts.database, inputs.openDb);
  const openDb = () => opened;
  const origins = originsOf(config).map((origin) => {
    const results = probeFrom(origin, { config, dns, surroundings });
    results.catch(() => {});
    return { origin, results };
  });
  const senders = sendingAddressesOf(origins, { config, dns });
  const domains = opened.then((db) => (db === null ? [] : listSenderDomains(db, domain, maxDomains + 1)));
  domains.catch(() => {});
  const context = { ...inputs, surroundings, dns, openDb, origins, senders, domains };
  return { ...context, ownAddresses: findOwnAddresses(context) };
}

async function findOwnAddresses(context: Omit<DoctorContext, 'ownAddresses'>): Promise<string[]> {
  const { config, dns, surroundings, senders } = context;
  const named = dns.addresses(config.hostname).catch((): string[] => []);
  const seen = (await senders).map(({ address }) => address);
  const all = [...seen, ...(await named), ...surroundings.ownAddresses()];
  // A name that resolves to loopback means a different machine for everyone else.
  return all.filter((address) => config.mtaAllowPrivate || isPublicAddress(address));
}

/** The database drivers wait longer than a person who runs the doctor. */
async function openWithin(timeoutMs: number, openDb: OpenDb): Promise<Db | null> {
  const late = Symbol();
  const opened = await withTimeout<Db | null | typeof late>(timeoutMs, openDb(), () => late);
  if (opened !== late) return opened;
  throw new Error(
    `the database did not answer within ${timeoutMs / 1000} s; check POSTERN_DATABASE_URL and that the database is running`,
  );
}
