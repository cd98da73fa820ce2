/** An organization's suppression list: search, add, remove, the reason of each entry. list.ts imports and exports CSV. */
import { z } from 'zod';
import { cursorOf, suppressionsQuery } from '../../../api/suppressions/schema.ts';
import {
  addSuppression,
  causeOf,
  findSuppression,
  findSuppressionById,
  removeSuppression,
  type SuppressionRecord,
  searchSuppressions,
  suppressionOf,
} from '../../../db/accounts/suppressions.ts';
import { compareKey, domainOf } from '../../../mail/address.ts';
import { checkForm, type Errors, emailField, oneLine, valuesOf } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { whyOf } from './suppression-words.ts';

export const suppressionsPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/suppressions': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/suppressions': add,
    'GET /dashboard/o/:org/suppressions/:id': why,
    'POST /dashboard/o/:org/suppressions/:id/remove': remove,
  },
};

const pageSize = 50;

async function list(visit: OrgVisit, parts: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const { org, query, context, form } = visit;
  const text = (query.get('q') ?? '').trim().slice(0, 320);
  const after = cursorIn(query);
  const { found, next } = await search(visit, parts, text, after);
  const more = new URLSearchParams({
    ...(text && { q: text }),
    ...(next !== null && { after: cursorOf(next) }),
  });
  const data = {
    rows: found.map((one) => ({ ...one, why: whyOf(one.reason) })),
    text,
    orgName: org.name,
    next: next === null ? null : `${context.path}?${more}`,
    isFirst: after === null,
    values: valuesOf(form),
    errors,
  };
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('suppressions/suppressions', 'Suppressions', data, { status });
}

function cursorIn(query: URLSearchParams): string | null {
  const checked = query.get('after');
  if (checked === null) return null;
  const parsed = suppressionsQuery.shape.after.safeParse(checked);
  if (!parsed.success) throw notFound();
  return parsed.data ?? null;
}

/** A complete address is looked up; anything else is searched as a part of addresses. */
async function search({ org }: OrgVisit, { db }: PageParts, text: string, after: string | null) {
  if (domainOf(text) !== null && after === null) {
    const one = await findSuppression(db, org.id, compareKey(text));
    if (one) return { found: [one], next: null };
  }
  const part = text === '' ? null : text.normalize('NFC').toLowerCase();
  return searchSuppressions(db, { orgId: org.id, part, after, limit: pageSize });
}

const fields = z.object({
  address: emailField,
  reason: z
    .union([
      z
        .string()
        .regex(/^\s*$/)
        .transform(() => 'manual'),
      oneLine('a reason'),
    ])
    .default('manual'),
});

async function add(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { org, base, form, now } = visit;
  const checked = checkForm(form, fields);
  if (!checked.ok) return list(visit, parts, checked.errors);
  const { address, reason } = checked.values;
  if (!(await addSuppression(parts.db, suppressionOf(org.id, address, reason), now)))
    return list(visit, parts, { address: 'The address is already on the list.' });
  parts.eventSignal.notify();
  return redirect(`${base}/suppressions`, `${address} was added. Nothing is sent to it any more.`);
}

async function why(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const one = await suppressionIn(visit, parts);
  const cause = whyOf(one.reason);
  const emailId = cause.isByEmail ? await causeOf(parts.db, visit.org.id, one) : null;
  return show('suppressions/why', one.address, { one, why: cause, emailId });
}

async function remove(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { address, addressKey } = await suppressionIn(visit, parts);
  if (await removeSuppression(parts.db, visit.org.id, addressKey, visit.now)) parts.eventSignal.notify();
  return redirect(`${visit.base}/suppressions`, `${address} was removed. Mail can be sent to it again.`);
}

/** Another organization's suppression is not found. */
async function suppressionIn({ context, org }: OrgVisit, { db }: PageParts): Promise<SuppressionRecord> {
  const { id } = context.params as { id: string };
  const one = z.guid().safeParse(id).success ? await findSuppressionById(db, org.id, id.toLowerCase()) : null;
  if (!one) throw notFound('suppression');
  return one;
}
