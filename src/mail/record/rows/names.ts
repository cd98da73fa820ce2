/** Names for the completion of command lines: a few of each kind, the likeliest first. Reads only by indexes. */
import { realOrganizations } from '#accounts/rows/organizations.ts';
import type { Db } from '#platform/database/engine/open.ts';

export interface Name {
  value: string;
  description: string;
}

export type NameKind =
  | 'organization'
  | 'sender-domain'
  | 'recipient-domain'
  | 'destination'
  | 'email'
  | 'key'
  | 'webhook'
  | 'returned'
  | 'user'
  | 'suppressed';

const maxNames = 100;

/** `orgId`: only of this organization, where names belong to one. `start`: how an address begins. */
export function namesOf(
  db: Db,
  kind: NameKind,
  { orgId, start }: { orgId?: string | undefined; start: string },
): Promise<Name[]> {
  const read = readers[kind](db, orgId ?? null, start);
  return read;
}

type Reader = (db: Db, orgId: string | null, start: string) => Promise<Name[]>;

const readers: Record<NameKind, Reader> = {
  organization: async (db) =>
    (await realOrganizations(db).orderBy('name').limit(maxNames).select('id', 'name')).map(
      ({ id, name }) => ({
        value: name,
        description: id,
      }),
    ),
  'sender-domain': async (db, orgId) => {
    const query = db('domains').orderBy('name').limit(maxNames).select('name', 'status');
    if (orgId !== null) query.where({ org_id: orgId });
    return (await query).map(({ name, status }) => ({ value: name, description: status }));
  },
  'recipient-domain': async (db) =>
    (await db('routes').orderBy('domain').limit(maxNames).select('domain', 'destination')).map(
      ({ domain, destination }) => ({ value: domain, description: destination }),
    ),
  destination: async (db) =>
    (await db('destinations').distinct('name').orderBy('name').limit(maxNames)).map(({ name }) => ({
      value: name,
      description: 'active destination',
    })),
  email: async (db, orgId) => {
    const query = db('emails').orderBy('id', 'desc').limit(20).select('id', 'subject');
    if (orgId !== null) query.where({ org_id: orgId });
    return (await query).map(({ id, subject }) => ({ value: id, description: subject }));
  },
  key: async (db, orgId) => {
    const query = db('api_keys').whereNull('revoked_at').orderBy('id', 'desc').limit(maxNames);
    if (orgId !== null) query.where({ org_id: orgId });
    return (await query.select('id', 'label')).map(({ id, label }) => ({ value: id, description: label }));
  },
  webhook: async (db) =>
    (await db('webhooks').orderBy('id').limit(maxNames).select('id', 'url')).map(({ id, url }) => ({
      value: id,
      description: url,
    })),
  returned: async (db) =>
    (await db('inbound_mails').orderBy('id', 'desc').limit(20).select('id', 'kind', 'recipient')).map(
      ({ id, kind, recipient }) => ({ value: id, description: `${kind} to ${recipient}` }),
    ),
  user: async (db) =>
    (await db('users').orderBy('email').limit(maxNames).select('email', 'name')).map(({ email, name }) => ({
      value: email,
      description: name ?? '',
    })),
  suppressed: async (db, orgId, start) => {
    const query = db('suppressions')
      .where('address_key', '>=', start.toLowerCase())
      .orderBy(['org_id', 'address_key'])
      .limit(maxNames)
      .select('address', 'reason');
    if (orgId !== null) query.where({ org_id: orgId });
    return (await query).map(({ address, reason }) => ({ value: address, description: reason }));
  },
};
