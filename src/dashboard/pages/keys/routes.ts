/** API keys, with the same functions as the public API and the command line. A key's value is shown once. */
import { z } from 'zod';
import { grants, parseScopes } from '../../../accounts/api-keys.ts';
import { makeKey, rotateKey } from '../../../accounts/create-key.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '../../../db/accounts/keys.ts';
import { checkboxes, checkForm, type Errors, oneLine, valuesOf } from '../../forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { pageOf } from '../../pagination.ts';

export const keysPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/keys': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/keys': make,
    'POST /dashboard/o/:org/keys/:id/revoke': revoke,
    'POST /dashboard/o/:org/keys/:id/rotate': rotate,
  },
};

const pageSize = 50;

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const keys = await pageOf(visit, pageSize, (page) => listKeys(db, visit.org.id, page));
  const values = { ...valuesOf(visit.form), scopes: visit.form.getAll('scopes') };
  const status = Object.keys(errors).length > 0 ? 422 : 200;
  return show('keys/keys', 'API keys', { ...keys, rows: keys.rows.map(present), values, errors }, { status });
}

function present(key: KeyRecord) {
  const isDomain = (scope: string) => scope.startsWith('domain_scope:');
  return {
    ...key,
    grants: key.scopes.filter((scope) => !isDomain(scope)),
    domains: key.scopes.filter(isDomain).map((scope) => scope.slice('domain_scope:'.length)),
  };
}

const fields = z
  .object({
    label: oneLine('a label'),
    scopes: checkboxes.pipe(z.array(z.enum(grants)).min(1, 'Select at least one permission.')),
    domains: z.string().max(5000).default(''),
  })
  .transform((checked, context) => {
    const domains = checked.domains.split(/[\s,]+/).filter((name) => name !== '');
    const scopes = parseScopes([...checked.scopes, ...domains.map((name) => `domain_scope:${name}`)]);
    if (Array.isArray(scopes)) return { label: checked.label, scopes };
    context.addIssue({
      code: 'custom',
      path: ['domains'],
      message: 'Enter domain names, such as example.com, separated by spaces.',
    });
    return z.NEVER;
  });

async function make(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return list(visit, parts, checked.errors);
  const made = await makeKey(parts.db, { orgId: visit.org.id, ...checked.values }, visit.now);
  return show('keys/made', 'API keys', { ...made, label: checked.values.label, isNew: true });
}

async function rotate(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const key = await keyIn(visit, parts);
  const made = await rotateKey(parts.db, key, visit.now);
  if (!made)
    return redirect(`${visit.base}/keys`, {
      tone: 'bad',
      text: `${key.label} was already revoked or replaced. Create a new key.`,
    });
  return show('keys/made', 'API keys', { ...made, label: key.label, isNew: false });
}

async function revoke(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const key = await keyIn(visit, parts);
  await revokeKey(parts.db, key.id, visit.now);
  return redirect(
    `${visit.base}/keys`,
    `${key.label} was revoked. Requests that use it are refused from now on.`,
  );
}

/** Another organization's key is not found. */
async function keyIn({ context, org }: OrgVisit, { db }: PageParts): Promise<KeyRecord> {
  const { id } = context.params as { id: string };
  const key = z.guid().safeParse(id).success ? await findKey(db, id.toLowerCase(), org.id) : null;
  if (!key) throw notFound('key');
  return key;
}
