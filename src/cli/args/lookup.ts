/**
 * Things by the names that an operator gives them. What is not there is a Failure that says what was looked for and
 * which command lists what there is. An id that is no UUID is not there either; PostgreSQL would not even compare it.
 */
import { validate as isUuid } from 'uuid';
import { type DomainRecord, findDomain } from '../../db/accounts/domains-table.ts';
import { findKey, type KeyRecord } from '../../db/accounts/keys.ts';
import {
  findOrganization,
  findOrganizationByName,
  type Organization,
} from '../../db/accounts/organizations.ts';
import { findUserByEmail, type User } from '../../db/accounts/users.ts';
import type { Db } from '../../db/engine/open.ts';
import { type EmailRecord, findEmail } from '../../db/events/emails.ts';
import { findWebhook, type Webhook } from '../../db/webhooks/webhooks.ts';
import { Failure } from '../failure.ts';

/** By id or by name. */
export async function requireOrganization(db: Db, idOrName: string): Promise<Organization> {
  const byId = isUuid(idOrName) ? await findOrganization(db, idOrName.toLowerCase()) : null;
  const found = byId ?? (await findOrganizationByName(db, idOrName));
  if (found) return found;
  throw new Failure(`there is no organization "${idOrName}"; \`postern org list\` lists them`);
}

export async function requireDomain(db: Db, org: Organization, name: string): Promise<DomainRecord> {
  const found = await findDomain(db, org.id, name);
  if (found) return found;
  throw new Failure(
    `${name} is not registered in ${org.name}; \`postern domain list --org ${quoted(org.name)}\` lists its domains`,
  );
}

export async function requireKey(db: Db, id: string): Promise<KeyRecord> {
  const found = isUuid(id) ? await findKey(db, id.toLowerCase(), null) : null;
  if (found) return found;
  throw new Failure(
    `there is no key with the id "${id}"; \`postern key list --org ORG\` shows them with their ids`,
  );
}

export async function requireEmail(db: Db, id: string): Promise<EmailRecord> {
  const found = isUuid(id) ? await findEmail(db, id.toLowerCase(), null) : null;
  if (found) return found;
  throw new Failure(
    `there is no email with the id "${id}"; give the emailId from the response to the send or from \`postern logs\``,
  );
}

export async function requireWebhook(db: Db, id: string): Promise<Webhook> {
  const found = isUuid(id) ? await findWebhook(db, id.toLowerCase(), null) : null;
  if (found) return found;
  throw new Failure(
    `there is no webhook with the id "${id}"; \`postern webhook list\` shows them with their ids`,
  );
}

export async function requireUser(db: Db, email: string): Promise<User> {
  const found = await findUserByEmail(db, email);
  if (found) return found;
  throw new Failure(`there is no user with the address ${email}; \`postern user list\` shows them all`);
}

/** As a shell would take it. */
export function quoted(text: string): string {
  return /^[\w.@:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
