/** The fields of Mailgun's forms that its two ways of sending have in common, as the members of our own send. */

import { listDomains } from '#accounts/rows/domains-table.ts';
import { addressTexts, longestAddresses } from '#front/dialects/address-texts.ts';
import type { DialectCall } from '#front/dialects/dialect.ts';
import { Form } from '#front/dialects/form.ts';
import { iso } from '#platform/base/clock.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { readTime, timeForm } from '#platform/values/read-time.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { withOptions } from './mailgun-options.ts';

export const maxRecipients = 1000;

/** The length of a field with content, in characters. */
export const longestForm = 8 * 1024 * 1024;

export function formOf({ body }: DialectCall): Form {
  if (body instanceof Form) return body;
  throw new Refusal('BAD_REQUEST', 'The body is empty. Send a form.');
}

/** The form with the options in the header of its message. Refuses what would be missed if it were left out silently. */
export function completed(given: Form, header: [name: string, value: string][]): Form {
  const form = withOptions(given, header);
  if (form.one('template'))
    throw new Refusal('BAD_REQUEST', 'template: Postern has no templates: send html or text.');
  if (switchIn(form, 'o:require-tls'))
    throw new Refusal('BAD_REQUEST', "o:require-tls: demand TLS in the domain's settings instead.");
  return form;
}

/** Lists are given as several fields, or with commas. */
export function addressesIn(form: Form, name: string): string[] {
  const given = form.all(name);
  const length = given.reduce((sum, text) => sum + text.length, 0);
  const found = length > longestAddresses ? null : given.flatMap(addressTexts);
  // Each is parsed before the email's recipients are counted.
  if (found !== null && found.length <= 2 * maxRecipients) return found;
  throw new Refusal('BAD_REQUEST', `${name}: an email can have at most ${maxRecipients} recipients.`);
}

/** The options of both ways of sending. `isTest`: everything is checked, and nothing is sent. */
export function optionsIn(form: Form, now: number) {
  return {
    tags: tagsIn(form),
    tracking: trackingIn(form),
    scheduledAt: deliveryTimeIn(form, now),
    isTest: switchIn(form, 'o:testmode') === true,
  };
}

/** Mailgun's tags are ours with the name `tag`, separated by commas, as webhooks and events show them. */
function tagsIn(form: Form): Record<string, string> {
  const tags = Object.fromEntries(form.under('v:'));
  const own = form.all('o:tag');
  if (own.length === 0) return tags;
  if (Object.hasOwn(tags, 'tag'))
    throw new Refusal('BAD_REQUEST', 'v:tag: o:tag is kept under this name; give one of them.');
  return { ...tags, tag: own.join(',') };
}

function trackingIn(form: Form): { openTracking?: boolean; clickTracking?: boolean } {
  const both = switchIn(form, 'o:tracking');
  const opens = switchIn(form, 'o:tracking-opens') ?? both;
  const clicks = switchIn(form, 'o:tracking-clicks') ?? both;
  return {
    ...(opens !== undefined && { openTracking: opens }),
    ...(clicks !== undefined && { clickTracking: clicks }),
  };
}

function switchIn(form: Form, name: string): boolean | undefined {
  const text = form.one(name)?.trim().toLowerCase();
  if (text === undefined || text === '') return undefined;
  if (['yes', 'true', 'htmlonly'].includes(text)) return true;
  if (['no', 'false'].includes(text)) return false;
  throw new Refusal('BAD_REQUEST', `${name}: must be yes or no.`);
}

/** RFC 2822, or ISO 8601. Mailgun sends what was to be sent in the past at once. */
function deliveryTimeIn(form: Form, now: number): string | undefined {
  const text = form.one('o:deliverytime');
  if (text === undefined || text.trim() === '') return undefined;
  const at = readMailDate(text) ?? readTime(text);
  const expected = at !== null && at > now && scheduledAtRefusal(at, now)?.issues[0]?.expected;
  if (expected) throw new Refusal('BAD_REQUEST', `o:deliverytime: must be ${expected}.`);
  if (at !== null) return at > now ? iso(at) : undefined;
  const example = 'Fri, 14 Oct 2026 23:10:10 -0000';
  throw new Refusal('BAD_REQUEST', `o:deliverytime: must be a date such as ${example}, or ${timeForm}.`);
}

/** RFC 5322 section 3.3; Date.parse would read a date without a zone in that of this machine. */
function readMailDate(text: string): number | null {
  const date = text.replace(/\([^()]*\)\s*$/, '').trim();
  const hasZone =
    /^(?:[a-z]{3},)?\s*\d{1,2}\s+[a-z]{3}\s+\d{4}\s.*(?:[+-]\d{4}|GMT|UTC?|Z|[ECMP][SD]T)$/i.test(date);
  const at = hasZone ? Date.parse(date) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

export function queued(messageId: string) {
  return { id: `<${messageId}>`, message: 'Queued. Thank you.' };
}

/** Pages are at URLs. */
export function urlOf({ baseUrl }: DialectCall, path: string): string {
  return `${baseUrl()}${path}`;
}

/** The domain in the path is the sender's, or another one of the organization. */
export async function requirePathDomain(call: DialectCall, from?: string): Promise<string> {
  const name = call.params.domain!.toLowerCase();
  const isKnown =
    (from !== undefined && parseMailbox(from)?.domain === name) ||
    (await listDomains(call.db, call.orgId)).some((one) => one.name === name);
  if (isKnown) return name;
  throw new Refusal('DOMAIN_NOT_FOUND', `Domain not found: ${name.slice(0, 255)}`);
}
