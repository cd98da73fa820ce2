/**
 * Compares the records to publish with those that a DNS provider has. A record that is not ours is never changed: the plan says so
 * and leaves ours out. A record at the name of one of our DKIM selectors is ours, so an old value there is replaced.
 */
import type { ZoneRecord } from '#accounts/zone-text.ts';
import { normalName } from '#platform/base/net/resolve.ts';

/** The part of a DNS provider that publishing needs. Errors have a message of one sentence, without secrets. */
export interface DnsProvider {
  /** As it is named in messages. */
  name: string;
  /** The records at a name; null: the name is in none of the zones here. */
  read(name: string): Promise<PresentRecord[] | null>;
  /** Rejects, and changes nothing, if the records at the name are no longer those that the plan has seen. */
  write(change: Change): Promise<void>;
}

/** A record that is there. */
export interface PresentRecord extends ZoneRecord {
  /** The strings of a TXT record: a name server compares them one by one. */
  strings?: Buffer[];
}

export interface Change {
  action: 'add' | 'replace';
  record: ZoneRecord;
  /** The records at the name when the plan was made. */
  present: PresentRecord[];
}

export type Planned =
  | Change
  | { action: 'keep'; record: ZoneRecord }
  /** Nothing is written; `reason` is what stands against it. */
  | { action: 'leave'; record: ZoneRecord; reason: string };

/** The types that can be published; a PTR record is in a zone of the provider of the address. */
const publishable = ['A', 'AAAA', 'CNAME', 'MX', 'TXT'];

/** Bounds the queries of one run. */
const maxRecords = 1_000;

export async function planChanges(provider: DnsProvider, records: ZoneRecord[]): Promise<Planned[]> {
  const planned: Planned[] = [];
  for (const { type, name, value } of records.slice(0, maxRecords)) {
    const record = { type, name, value };
    planned.push(
      planFor(record, publishable.includes(type) ? await provider.read(name) : null, provider.name),
    );
  }
  return planned;
}

/** The records at a name that the change removes. */
export function replacedBy({ action, record, present }: Change): PresentRecord[] {
  return action === 'add' ? [] : present.filter((one) => competes(one, record));
}

function planFor(record: ZoneRecord, present: PresentRecord[] | null, provider: string): Planned {
  const leave = (reason: string): Planned => ({ action: 'leave', record, reason });
  if (present === null) return leave(`the name is in none of the zones of ${provider}`);
  const [alias] = present.filter(({ type }) => type === 'CNAME');
  // RFC 1034 section 3.6.2: a name with a CNAME has nothing else.
  const rivals = present.filter((one) => competes(one, record));
  const [first, ...others] = rivals;
  if (first === undefined) return alias ? leave(isThere(alias)) : { action: 'add', record, present };
  if (others.length > 0) return leave(`there are ${rivals.length} records, one of them ${isThere(first)}`);
  if (isSame(first, record) || isPolicyOfTheDomain(first, record)) return { action: 'keep', record };
  const isOurs = isDkim(record) && first.type === 'TXT';
  return isOurs ? { action: 'replace', record, present } : leave(isThere(first));
}

const maxShown = 120;

function isThere({ type, value }: ZoneRecord): string {
  const shown = value.length > maxShown ? `${value.slice(0, maxShown)}…` : value;
  return `the name has a record that is not from Postern: ${type} ${shown}`;
}

const isDkim = ({ type, name }: ZoneRecord) => type === 'TXT' && /^pstn[0-9a-f]{8}\._domainkey\./.test(name);
const isSpf = (value: string) => /^v=spf1( |$)/i.test(value);
const isDmarc = (value: string) => /^v ?= ?DMARC1( ?;|$)/.test(value);

/** Whether the record is in the place of ours: the same kind of TXT record, or any record that an alias excludes. */
function competes(one: ZoneRecord, ours: ZoneRecord): boolean {
  if (ours.type === 'CNAME') return true;
  if (one.type !== ours.type) return false;
  if (ours.type !== 'TXT' || isDkim(ours)) return true;
  return isSpf(ours.value) ? isSpf(one.value) : isDmarc(one.value);
}

/** The domain's own DMARC policy is as good as ours. */
function isPolicyOfTheDomain(one: ZoneRecord, ours: ZoneRecord): boolean {
  return one.type === 'TXT' && ours.type === 'TXT' && isDmarc(one.value) && isDmarc(ours.value);
}

/** Names and addresses are compared without letter case and the root's dot; texts as they are. */
function isSame(one: ZoneRecord, other: ZoneRecord): boolean {
  const normal = ({ type, value }: ZoneRecord) =>
    type === 'TXT' ? value : normalName(value).replace(/\s+/g, ' ');
  return one.type === other.type && normal(one) === normal(other);
}

/** Whether two lists have the same records, in any order. */
export function areSame(some: ZoneRecord[], others: ZoneRecord[]): boolean {
  return some.length === others.length && some.every((one) => others.some((other) => isSame(one, other)));
}
