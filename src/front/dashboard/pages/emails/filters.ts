/** The filters of the email list, read from the page's URL. Invalid values are ignored; a status that does not exist is named. */

import { statusOptions } from '#front/dashboard/email-status.ts';
import { withoutBrackets } from '#mail/record/rows/find-by-name.ts';
import type { Search } from '#mail/record/rows/search-emails.ts';
import { withoutKey } from '#platform/database/tables/mail-group.ts';

export type Values = Record<(typeof names)[number], string>;

const fields = ['to', 'subject', 'status', 'within', 'id', 'from', 'tag', 'since', 'until'] as const;

/** Set by the links of the statistics; the form has no field for them. */
const links = ['key', 'reason', 'fault'] as const;

const names = [...fields, ...links];

const hour = 3_600_000;
const day = 24 * hour;

export const spans = [
  ['', 'Any time'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const;

const lengths: Record<string, number> = { '1h': hour, '24h': day, '7d': 7 * day, '30d': 30 * day };

export const statuses = [
  ['', 'Any status'],
  ['waiting', 'Waiting'],
  ['opened', 'Opened'],
  ['clicked', 'Clicked'],
  ...statusOptions,
] as const;

const maxLength = 2100;
/** Recipients that are looked for at once. */
const maxWords = 8;

export function readFilters(query: URLSearchParams): Values {
  const values = names.map((name) => [name, (query.get(name) ?? '').trim().slice(0, maxLength)] as const);
  return Object.fromEntries(values) as Values;
}

export function searchOf(values: Values, now: number): Omit<Search, 'orgId' | 'limit'> {
  const { to, from, subject, id, tag, status, within, since, until, key, reason, fault } = values;
  const [, name, value] = /^([^=]{1,64})=(.*)$/.exec(tag) ?? [];
  return {
    contains: {
      // An address has neither.
      to: to === '' ? undefined : wordsIn(to),
      from: from || undefined,
      subject: subject || undefined,
      id: withoutBrackets(id) || undefined,
    },
    status: isStatus(status) ? status : undefined,
    tags: name === undefined ? {} : { [name.trim()]: value!.trim() },
    tag: name === undefined && tag !== '' ? tag : undefined,
    keyId: key === '' ? undefined : key === withoutKey ? null : key,
    bounce: reason !== '' ? { category: reason } : fault !== '' ? { fault } : undefined,
    since: later(lengths[within] && now - lengths[within], dayAt(since)),
    until: until === '' ? undefined : endOf(dayAt(until)),
  };
}

function wordsIn(text: string): string[] {
  return text
    .split(/[\s,]+/)
    .filter((word) => word !== '')
    .slice(0, maxWords);
}

/** The URL of the same search, with more parameters. */
export function addressOf(
  path: string,
  values: Record<string, string>,
  more: Record<string, string | number> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...values, ...more }))
    if (value !== '') search.set(name, `${value}`);
  return search.size === 0 ? path : `${path}?${search}`;
}

/** The restriction that a link of the statistics sets, in words. */
export function restrictionOf({ key, reason, fault }: Values): string | null {
  if (key !== '')
    return key === withoutKey ? 'Only emails sent without a key.' : `Only emails of the key ${key}.`;
  if (reason !== '') return `Only emails that bounced for the reason ${reason}.`;
  return fault === '' ? null : `Only emails whose bounce is the fault of the ${fault}.`;
}

/** A status in the URL that does not exist; null if all is well. */
export function unknownStatus({ status }: Values): string | null {
  return status === '' || isStatus(status) ? null : status;
}

function isStatus(text: string): text is NonNullable<Search['status']> {
  return statuses.some(([status]) => status !== '' && status === text);
}

/** Start of a UTC day. */
function dayAt(text: string): number | undefined {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

const endOf = (time: number | undefined) => (time === undefined ? undefined : time + day);

function later(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}
