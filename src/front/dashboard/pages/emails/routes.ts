/**
 * The list of emails: searched, filtered, newest first, the first page live. One request scans a bounded number of emails
 * (mail/record/rows/search-emails.ts). If that does not fill the page, the page says how far it has searched and the browser
 * continues by itself, up to `maxRounds` times. Without scripts, a link does that.
 */
import { z } from 'zod';
import { sendSamples, smtpOf } from '#front/api/send-samples.ts';
import { statusWords } from '#front/dashboard/email-status.ts';
import { legible } from '#front/dashboard/legible.ts';
import { unlessCurrent, versionOf } from '#front/dashboard/live-fragment.ts';
import { count } from '#front/dashboard/number-format.ts';
import {
  type DashboardPage,
  fragment,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { emailIdByIndex } from '#mail/record/rows/find-by-name.ts';
import { deleteTestMail } from '#mail/record/rows/forget-emails.ts';
import { type EmailSummary, searchEmails } from '#mail/record/rows/search-emails.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';
import { testDomain } from '#platform/values/test-route.ts';
import {
  addressOf,
  readFilters,
  restrictionOf,
  searchOf,
  spans,
  statuses,
  unknownStatus,
} from './filters.ts';

export const emailsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/emails': (visit, parts) => list(visit, parts, 'emails'),
    'GET /dashboard/o/:org/inbox': (visit, parts) => list(visit, parts, 'inbox'),
    async 'POST /dashboard/o/:org/inbox/delete'({ org, base }, { db }) {
      const deleted = await deleteTestMail(db, org.id, maxDeleted);
      const more = deleted < maxDeleted ? '' : ' There are more: delete again.';
      return redirect(
        `${base}/inbox`,
        `${count(deleted)} ${deleted === 1 ? 'email was' : 'emails were'} deleted.${more}`,
      );
    },
  },
};

const pageSize = 50;
/** How often a browser continues a search by itself. */
const maxRounds = 100;
/** Deleted by one request; it takes about a second. */
const maxDeleted = 2_000;
const maxTags = 3;

/** All emails, or the inbox: those of test keys (platform/values/test-route.ts). */
const lists = {
  emails: { title: 'Emails', intervalMs: 4000 },
  // Somebody who tries something out waits for its mail.
  inbox: { title: 'Test inbox', intervalMs: 1000 },
};

async function list(visit: OrgVisit, parts: PageParts, which: keyof typeof lists): Promise<PageAnswer> {
  const { db } = parts;
  const { query, org, now, base } = visit;
  const isInbox = which === 'inbox';
  const values = readFilters(query);
  const after = idIn(query.get('after'));
  const had = numberIn(query.get('had'), pageSize - 1);
  const round = numberIn(query.get('round'), maxRounds);
  const isNew = values.id !== '' && after === undefined && !query.has('part');
  const emailId = isNew ? await emailIdByIndex(db, org.id, values.id) : null;
  if (emailId !== null) return redirect(`${base}/emails/${emailId}`);
  const wanted = pageSize - had;
  const kind = { onlyTest: isInbox, withoutTest: !isInbox && !parts.isDevelopment };
  const search = { ...searchOf(values, now), ...kind, orgId: org.id, after, limit: wanted };
  const { emails, next } = await searchEmails(db, search);
  const isFull = emails.length === wanted;
  const { title, intervalMs } = lists[which];
  const path = `${base}/${which}`;
  const further = { after: next ?? '', had: had + emails.length, round: round + 1 };
  const data = {
    rows: emails.map(present),
    path,
    title,
    isInbox,
    canDelete: isInbox && visit.may('developer') && had + emails.length > 0,
    intervalMs,
    unknownStatus: unknownStatus(values),
    restriction: restrictionOf(values),
    isFiltered: addressOf(path, values) !== path,
    isFirst: after === undefined,
    older: next !== null && isFull ? addressOf(path, values, { after: next }) : null,
    /** URL that continues the search, if the page is not full and there are older emails. */
    further: next !== null && !isFull ? addressOf(path, values, further) : null,
    exported: addressOf(`${path}/export`, values),
    lookedTo: next === null ? null : timeOfId(next),
    isAsking: round < maxRounds,
    hasNone: had + emails.length === 0,
    samples:
      isInbox && had + emails.length === 0 ? samplesOf(parts, { key: 'em_test_…', domain: testDomain }) : [],
  };
  if (query.get('part') === 'rows') return fragment('emails/rows', { ...data, isPart: true });
  const version = versionOf(data, now);
  const isLive = data.isFirst && data.further === null;
  const live = isLive ? addressOf(path, values, { part: 'list', seen: version }) : null;
  if (query.get('part') === 'list') return unlessCurrent(visit, version, 'emails/list', { ...data, live });
  const scripts = ['live.js', ...(isInbox ? ['unread.js'] : [])];
  return show('emails/emails', title, { ...data, values, spans, statuses, live }, { scripts });
}

/** How to send a first mail. */
export function samplesOf(
  { config, isDevelopment, baseUrl }: PageParts,
  { key, domain }: { key: string; domain: string },
) {
  const url = baseUrl();
  const smtp = smtpOf(config, isDevelopment ? new URL(url).hostname : undefined);
  return sendSamples({ url, key, from: `hello@${domain}`, smtp });
}

function present({ id, status, recipients, subject, tags, isTest, createdAt }: EmailSummary) {
  const pairs = Object.entries(tags);
  return {
    id,
    createdAt,
    isTest,
    status: statusWords[status],
    to: legible(recipients[0]?.address ?? ''),
    others: recipients.length - 1,
    subject: legible(subject),
    tags: pairs.slice(0, maxTags).map(([name, value]) => legible(value === '' ? name : `${name}=${value}`)),
    moreTags: Math.max(pairs.length - maxTags, 0),
  };
}

function idIn(text: string | null): string | undefined {
  if (text === null) return undefined;
  if (!z.guid().safeParse(text).success) throw notFound();
  return text.toLowerCase();
}

function numberIn(text: string | null, max: number): number {
  const number = Number(text ?? 0);
  return Number.isInteger(number) && number >= 0 ? Math.min(number, max) : 0;
}
