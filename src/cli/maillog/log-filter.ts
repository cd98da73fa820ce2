/**
 * Filters for lines of the mail log. A filter is a function of the line alone, unless it searches for an id: then it
 * learns from the lines which emails the id belongs to, so the log must be read in order.
 */
import { compareKey, domainOf, parseMailbox, toDomain } from '#platform/values/address.ts';
import type { MailLogLine } from '#platform/values/mail-log.ts';

/** A line of the file. Other programs may have written to it, so only these three members are certain. */
export type LogLine = Partial<MailLogLine> & { time: string; event: string; msg: string };

export const states = [
  'accepted',
  'refused',
  'repeated',
  'attempted',
  'delivered',
  'deferred',
  'bounced',
  'expired',
  'received',
] as const;

export interface Filters {
  orgId?: string;
  /** The id of an email, in lower case. */
  emailId?: string;
  to?: string;
  /** The sender's address or domain. */
  from?: string;
  domain?: string;
  destination?: Destination;
  states?: readonly string[];
  since?: number;
  until?: number;
}

/** The hosts in the destination's name, and the domains that they have served. */
interface Destination {
  hosts: ReadonlySet<string>;
  domains: ReadonlySet<string>;
}

export type Keep = (line: string) => boolean;

/** Null if the line is incomplete: a process that is killed may leave one. */
export function readLine(line: string): LogLine | null {
  try {
    const read = JSON.parse(line);
    const isWhole = [read?.time, read?.event, read?.msg].every((each) => typeof each === 'string');
    return isWhole ? read : null;
  } catch {
    return null;
  }
}

export function createKeep(filters: Filters, search?: IdSearch): Keep {
  const { emailId = null, since = null, until = null } = filters;
  const tests: ((line: LogLine) => boolean)[] = [];
  if (search) tests.push(search.has);
  if (since !== null) tests.push(({ time }) => Date.parse(time) >= since);
  if (until !== null) tests.push(({ time }) => Date.parse(time) < until);
  if (emailId !== null) tests.push((line) => line.emailId === emailId);
  if (filters.orgId) tests.push(({ orgId }) => orgId === filters.orgId);
  if (filters.states) tests.push((line) => filters.states!.some((state) => isIn(state, line)));
  if (filters.domain) tests.push(({ destination }) => destination === filters.domain);
  if (filters.destination) tests.push((line) => isFor(filters.destination!, line));
  if (filters.to) tests.push(({ recipient }) => isSame(recipient, filters.to!));
  if (filters.from) tests.push(({ from }) => isFrom(from, filters.from!));
  return (text) => {
    // Most lines of a large file are rejected by this text search, before the costly JSON.parse.
    if (emailId !== null && !text.includes(emailId)) return false;
    if (search && !search.maybe(text)) return false;
    const line = readLine(text);
    return line !== null && tests.every((test) => test(line));
  };
}

/** The last group of a UUID, which is random: enough to tell emails apart. */
export function endOf(id: string): string {
  return id.slice(id.lastIndexOf('-') + 1);
}

/** Finds the emails that an id belongs to, from the lines passed to `has`. */
export interface IdSearch {
  /** A cheap test before parsing: false if the line cannot be about any of these emails. */
  maybe(text: string): boolean;
  has(line: LogLine): boolean;
  /** The whole log has been read: an address stands for the newest email to it, unless it was an id. */
  settle(): void;
  emails(): string[];
}

/** Bounds memory: a client may send all its requests with one id. */
const maxEmails = 10_000;
/** With more emails than this, one search of the text for each of them costs more than parsing the line. */
const maxSearches = 10;

/** Fewer hexadecimal digits than this are not taken for the end of an id. */
const idEnd = /^[0-9a-f]{6,12}$/;

/**
 * `wanted`: the id of a request, an email, a delivery or a received mail, the end of an email's id, a Message-ID, a word of a
 * host's reply, or an address.
 */
export function createIdSearch(wanted: string): IdSearch {
  const id = wanted.trim().replace(/^<(.*)>$/, '$1');
  const lower = id.toLowerCase();
  const key = domainOf(id) === null ? null : compareKey(id);
  let newestTo: string | null = null;
  const word = new RegExp(`(?<![\\w-])${id.replace(/\W/g, '\\$&')}(?![\\w-])`);
  const emails = new Set<string>();
  const isNamed = (line: LogLine) =>
    line.emailId === lower ||
    (idEnd.test(lower) && line.emailId!.endsWith(lower)) ||
    line.deliveryId === lower ||
    line.requestId === id ||
    line.messageId === id ||
    (typeof line.reply === 'string' && word.test(line.reply));
  return {
    maybe(text) {
      if (text.includes(id) || text.includes(lower)) return true;
      if (key !== null && text.toLowerCase().includes(lower)) return true;
      return emails.size > maxSearches || [...emails].some((email) => text.includes(email));
    },
    has(line) {
      if (typeof line.emailId !== 'string')
        return line.receivedId === lower || (line.event === 'refused' && line.requestId === id);
      if (key !== null && line.event === 'accepted' && isSame(line.recipient, id)) newestTo = line.emailId;
      if (!emails.has(line.emailId) && emails.size < maxEmails && isNamed(line)) emails.add(line.emailId);
      return emails.has(line.emailId);
    },
    settle() {
      if (emails.size === 0 && newestTo !== null) emails.add(newestTo);
    },
    emails: () => [...emails],
  };
}

function isIn(state: string, { event, category }: LogLine): boolean {
  return state === 'expired' ? category === 'expired' : event === state;
}

function isFor({ hosts, domains }: Destination, { destination = '', host }: LogLine): boolean {
  return domains.has(destination) || (typeof host === 'string' && hosts.has(host));
}

function isSame(recipient: string | undefined, wanted: string): boolean {
  return typeof recipient === 'string' && compareKey(recipient) === compareKey(wanted);
}

/** `from` is the field of the request, perhaps with a name; `wanted` is an address or a domain. */
function isFrom(from: string | undefined, wanted: string): boolean {
  const sender = typeof from === 'string' ? parseMailbox(from) : null;
  if (!sender) return false;
  return wanted.includes('@')
    ? compareKey(sender.address) === compareKey(wanted)
    : sender.domain === toDomain(wanted);
}
