/** Finds what an operator names. If it does not exist, the Failure names the command that lists what exists. */
import { validate as isUuid } from 'uuid';
import { type DomainRecord, findDomain } from '../../db/accounts/domains-table.ts';
import { findKey } from '../../db/accounts/keys.ts';
import {
  findOrganization,
  findOrganizationByName,
  type Organization,
} from '../../db/accounts/organizations.ts';
import { findUserByEmail, type User } from '../../db/accounts/users.ts';
import type { Db } from '../../db/engine/open.ts';
import { findEmail } from '../../db/events/emails.ts';
import { findWebhook } from '../../db/webhooks/webhooks.ts';
import { Failure } from '../failure.ts';

export async function requireOrganization(db: Db, idOrName: string): Promise<Organization> {
  const byId = isUuid(idOrName) ? await findOrganization(db, idOrName.toLowerCase()) : null;
  const found = byId ?? (await findOrganizationByName(db, idOrName));
  return found ?? missing(`there is no organization "${idOrName}"; \`postern org list\` lists them`);
}

/** The organization of the option --org; undefined if it is not given. */
export async function organizationId(db: Db, idOrName: string | undefined): Promise<string | undefined> {
  return idOrName === undefined ? undefined : (await requireOrganization(db, idOrName)).id;
}

export async function requireDomain(db: Db, org: Organization, name: string): Promise<DomainRecord> {
  const list = `postern domain list --org ${quoted(org.name)}`;
  return (
    (await findDomain(db, org.id, name)) ??
    missing(`${name} is not registered in ${org.name}; \`${list}\` lists its domains`)
  );
}

export async function requireUser(db: Db, email: string): Promise<User> {
  const found = await findUserByEmail(db, email);
  return found ?? missing(`there is no user with the address ${email}; \`postern user list\` shows them all`);
}

export const requireKey = byId('key', findKey, '`postern key list --org ORG` shows them with their ids');

export const requireEmail = byId(
  'email',
  findEmail,
  'give the emailId from the response to the send or from `postern logs`',
);

export const requireWebhook = byId(
  'webhook',
  findWebhook,
  '`postern webhook list` shows them with their ids',
);

/** PostgreSQL refuses to compare an id that is not a UUID, so such an id is not looked up. */
function byId<T>(
  noun: string,
  find: (db: Db, id: string, orgId: null) => Promise<T | null>,
  advice: string,
): (db: Db, id: string) => Promise<T> {
  return async (db, id) => {
    const found = isUuid(id) ? await find(db, id.toLowerCase(), null) : null;
    return found ?? missing(`there is no ${noun} with the id "${id}"; ${advice}`);
  };
}

function missing(message: string): never {
  throw new Failure(message);
}

/** Quoted for a shell, if it must be. */
export function quoted(text: string): string {
  return /^[\w.@:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
