/** API keys, with the same functions as the public API and the command line. A key's value is shown once. */
import { z } from 'zod';
import { allowedDomains, grants, parseScopes } from '#accounts/api-keys.ts';
import { defaultOverlapMs, makeKey, rotateKey } from '#accounts/create-key.ts';
import { listDomains } from '#accounts/rows/domains-table.ts';
import { findKey, type KeyRecord, listKeys, revokeKey } from '#accounts/rows/keys.ts';
import { listStreams } from '#accounts/rows/streams.ts';
import { asProblem, itemIn, showForm } from '#front/dashboard/form-page.ts';
import {
  checkbox,
  checkboxes,
  checkForm,
  type Errors,
  oneLine,
  problemWith,
  valuesOf,
} from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  fragment,
  type OrgVisit,
  type PageParts,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { samplesOf } from '#front/dashboard/pages/emails/routes.ts';
import { pageOf } from '#front/dashboard/pagination.ts';
import { latestEmailOf } from '#mail/record/rows/emails.ts';
import { testDomain } from '#platform/values/test-route.ts';

const fields = z
  .object({
    label: oneLine('a label'),
    scopes: checkboxes.pipe(z.array(z.enum(grants)).min(1, 'Select at least one permission.')),
    domains: z.string().max(5000).default(''),
    mode: z.enum(['live', 'test'], { error: 'Choose one of the two.' }).default('live'),
    strict: checkbox,
    stream: z.string().max(30).default(''),
  })
  .transform((checked, context) => {
    const domains = checked.domains.split(/[\s,]+/).filter((name) => name !== '');
    const scopes = parseScopes([...checked.scopes, ...domains.map((name) => `domain_scope:${name}`)]);
    const { label, strict, mode, stream } = checked;
    if (Array.isArray(scopes)) return { label, scopes, strict, test: mode === 'test', stream };
    context.addIssue({
      code: 'custom',
      path: ['domains'],
      message: problemWith(checked.domains, 'Enter domain names, such as example.com, separated by spaces.'),
    });
    return z.NEVER;
  });

export const keysPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/keys': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/keys'(visit, parts) {
      const checked = checkForm(visit.form, fields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const unknown = await unknownDomain(visit.org.id, checked.values.scopes, parts.db);
      if (unknown !== undefined)
        return list(visit, parts, { domains: `${unknown} is not among this organization’s domains.` });
      const made = await makeKey(parts.db, { orgId: visit.org.id, ...checked.values }, visit.now);
      const samples = await samplesFor(made.key, checked.values, visit.org.id, parts);
      const needsDomain = samples === null && canSend(checked.values.scopes);
      const data = { ...made, samples, needsDomain, isNew: true };
      return show('keys/made', 'API keys', data, { scripts: ['live.js'] });
    },
    async 'GET /dashboard/o/:org/keys/:id/first-email'(visit, { db }) {
      const { id: keyId, createdAt } = await keyIn(visit, db);
      const emailId = await latestEmailOf(db, visit.org.id, keyId);
      return fragment('keys/first-email', { keyId, emailId, isOver: visit.now - createdAt >= maxWaitMs });
    },
    async 'POST /dashboard/o/:org/keys/:id/revoke'(visit, { db }) {
      const key = await keyIn(visit, db);
      await revokeKey(db, key.id, visit.now);
      const flash = `${key.label} was revoked. Requests that use it are refused from now on.`;
      return redirect(`${visit.base}/keys`, flash);
    },
    async 'POST /dashboard/o/:org/keys/:id/rotate'(visit, { db }) {
      const overlapMs = visit.form.get('now') === 'on' ? 0 : defaultOverlapMs;
      const made = await rotateKey(db, await keyIn(visit, db), visit.now, overlapMs).catch(asProblem);
      if ('problem' in made) return redirect(`${visit.base}/keys`, { tone: 'bad', text: made.problem });
      return show('keys/made', 'API keys', { ...made, isNew: false });
    },
  },
};

/** How long the page of a new key waits for its first email. */
const maxWaitMs = 600_000;

/** Null if the key cannot send, or not yet: a sample that is refused is of no use. */
async function samplesFor(
  key: string,
  { scopes, test }: { scopes: string[]; test: boolean },
  orgId: string,
  parts: PageParts,
) {
  if (!canSend(scopes)) return null;
  const allowed = allowedDomains({ scopes });
  const isAllowed = (name: string) => allowed.length === 0 || allowed.includes(name);
  const domain =
    test && allowed.length === 0 ? testDomain : (await verifiedNames(orgId, parts.db)).find(isAllowed);
  if (domain === undefined) return null;
  return samplesOf(parts, { key, domain });
}

function canSend(scopes: string[]): boolean {
  return scopes.includes('email:send') || scopes.includes('full_access');
}

async function verifiedNames(orgId: string, db: PageParts['db']): Promise<string[]> {
  return (await listDomains(db, orgId)).filter(({ status }) => status === 'verified').map(({ name }) => name);
}

/** A domain of the scopes that the organization does not have: a key for it could not send. */
async function unknownDomain(
  orgId: string,
  scopes: string[],
  db: PageParts['db'],
): Promise<string | undefined> {
  const names = new Set((await listDomains(db, orgId)).map(({ name }) => name));
  return allowedDomains({ scopes }).find((name) => !names.has(name));
}

const pageSize = 50;

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}) {
  const keys = await pageOf(visit, pageSize, (page) => listKeys(db, visit.org.id, page));
  const values = visit.form.size === 0 ? await firstValues(visit.org.id, db) : valuesOf(visit.form);
  values.scopes ??= visit.form.getAll('scopes');
  const streams = await listStreams(db, visit.org.id);
  const data = { ...keys, streams, rows: keys.rows.map((key) => present(key, visit.now)), values };
  return showForm('keys/keys', 'API keys', visit, data, errors);
}

/** Without a verified domain, only a test key can send. */
async function firstValues(orgId: string, db: PageParts['db']): Promise<Record<string, unknown>> {
  const isTest = (await verifiedNames(orgId, db)).length === 0;
  return { scopes: ['email:send'], mode: isTest ? 'test' : 'live', strict: isTest };
}

function present(key: KeyRecord, now: number) {
  const isDomain = (scope: string) => scope.startsWith('domain_scope:');
  return {
    ...key,
    hasEnded: key.endsAt !== null && key.endsAt <= now,
    grants: key.scopes.filter((scope) => !isDomain(scope)),
    domains: key.scopes.filter(isDomain).map((scope) => scope.slice('domain_scope:'.length)),
  };
}

function keyIn(visit: OrgVisit, db: PageParts['db']): Promise<KeyRecord> {
  return itemIn(visit, 'key', (id, orgId) => findKey(db, id, orgId));
}
