/** An organization's suppression list: search, add, remove, the reason of each entry. list.ts imports and exports CSV. */
import { z } from 'zod';
import { listStreams } from '#accounts/rows/streams.ts';
import {
  causeOf,
  findSuppression,
  findSuppressionById,
  ofAll,
  type SuppressionRecord,
} from '#accounts/rows/suppressions.ts';
import { defaultReason, searchList, suppressAddress, unsuppressAddress } from '#accounts/suppression-list.ts';
import { cursorOf, suppressionsQuery } from '#front/api/suppressions/schema.ts';
import { itemIn, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, emailField, nullable, oneLine } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect, show } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import { whyOf } from './suppression-words.ts';

const fields = z.object({ address: emailField, reason: nullable(oneLine('a reason')) });

export const suppressionsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/suppressions': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/suppressions'(visit, parts) {
      const { org, base, form, now } = visit;
      const checked = checkForm(form, fields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { address, reason } = checked.values;
      if (!(await suppressAddress({ ...parts, orgId: org.id, now }, address, reason ?? defaultReason)))
        return list(visit, parts, { address: 'The address is already on the list.' });
      return redirect(`${base}/suppressions`, `${address} was added. Nothing is sent to it any more.`);
    },
    async 'GET /dashboard/o/:org/suppressions/:id'(visit, { db }) {
      const one = await suppressionIn(visit, db);
      const why = whyOf(one.reason);
      const emailId = why.isByEmail ? await causeOf(db, visit.org.id, one) : null;
      return show('suppressions/why', one.address, { one, why, emailId });
    },
    async 'POST /dashboard/o/:org/suppressions/:id/remove'(visit, parts) {
      const { address, stream } = await suppressionIn(visit, parts.db);
      await unsuppressAddress({ ...parts, orgId: visit.org.id, now: visit.now, stream }, address);
      return redirect(
        `${visit.base}/suppressions${queryOf(stream)}`,
        `${address} was removed. Mail can be sent to it again.`,
      );
    },
  },
};

/** Of the list that a stream has. */
const queryOf = (stream: string) => (stream === ofAll ? '' : `?${new URLSearchParams({ stream })}`);

const pageSize = 50;

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const { org, query, context } = visit;
  const text = (query.get('q') ?? '').trim().slice(0, 320);
  const after = cursorIn(query);
  const streams = await listStreams(db, org.id);
  const stream = streams.find(({ name }) => name === query.get('stream')) ?? null;
  const { found, next } = await search(db, { orgId: org.id, stream: stream?.name ?? ofAll }, text, after);
  const more = new URLSearchParams({
    ...(stream && { stream: stream.name }),
    ...(text && { q: text }),
    ...(next !== null && { after: cursorOf(next) }),
  });
  const data = {
    rows: found.map((one) => ({ ...one, why: whyOf(one.reason) })),
    text,
    orgName: org.name,
    streams,
    stream,
    next: next === null ? null : `${context.path}?${more}`,
    isFirst: after === null,
  };
  return showForm('suppressions/suppressions', 'Suppressions', visit, data, errors);
}

function cursorIn(query: URLSearchParams): string | null {
  const parsed = suppressionsQuery.shape.after.safeParse(query.get('after') ?? undefined);
  if (!parsed.success) throw notFound();
  return parsed.data ?? null;
}

/** A complete address is looked up; anything else is searched as a part of addresses. */
async function search(
  db: PageParts['db'],
  list: { orgId: string; stream: string },
  text: string,
  after: string | null,
) {
  if (domainOf(text) !== null && after === null) {
    const one = await findSuppression(db, list.orgId, compareKey(text), list.stream);
    if (one) return { found: [one], next: null };
  }
  return searchList(db, text, { ...list, after, limit: pageSize });
}

function suppressionIn(visit: OrgVisit, db: PageParts['db']): Promise<SuppressionRecord> {
  return itemIn(visit, 'suppression', (id, orgId) => findSuppressionById(db, orgId, id));
}
