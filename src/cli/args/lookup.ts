/** Finds what an operator names. If it does not exist, the Failure names the command that lists what exists. */

import { type Command, CommanderError } from 'commander';
import { validate as isUuid } from 'uuid';
import { type DomainRecord, findDomain } from '#accounts/rows/domains-table.ts';
import { findKey } from '#accounts/rows/keys.ts';
import {
  findOrganization,
  findOrganizationByName,
  listOrganizations,
  type Organization,
} from '#accounts/rows/organizations.ts';
import { findUserByEmail, type User } from '#accounts/rows/users.ts';
import { chosenOrganization } from '#cli/args/chosen-organization.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { findEmailsInLog } from '#cli/maillog/find-emails.ts';
import { openLog } from '#cli/maillog/log-file.ts';
import { createIdSearch } from '#cli/maillog/log-filter.ts';
import { findReceived } from '#mail/received/rows/received-mails.ts';
import { findRoute } from '#mail/received/rows/receiving-routes.ts';
import { findPause } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { emailIdsOf, idsEndingIn } from '#mail/record/rows/find-by-name.ts';
import { findWebhook } from '#mail/webhooks/rows/webhooks.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

export async function requireOrganization(db: Db, idOrName: string): Promise<Organization> {
  const byId = isUuid(idOrName) ? await findOrganization(db, idOrName.toLowerCase()) : null;
  const found = byId ?? (await findOrganizationByName(db, idOrName));
  return found ?? missing(`there is no organization "${idOrName}"; \`postern org list\` lists them`);
}

/** The organization that a command acts for: of --org, else of POSTERN_ORG, else of `postern use`, else the only one. */
export async function requireOwner(context: CommandContext, org: string | undefined): Promise<Organization> {
  const db = await context.db();
  const named = org ?? (context.env().POSTERN_ORG?.trim() || undefined);
  if (named !== undefined) return requireOrganization(db, named);
  const id = chosenOrganization(context.config().dataDir);
  const chosen = id === null ? null : await findOrganization(db, id);
  if (chosen) return chosen;
  const [first, ...others] = await listOrganizations(db);
  if (!first) return missing('there is no organization yet; `postern org create --name NAME` creates one');
  if (others.length === 0) return first;
  const problem = `error: there are ${others.length + 1} organizations; give --org ORG, or choose one of \`postern org list\` with \`postern use ORG\``;
  throw new CommanderError(2, 'postern.organization', problem);
}

export interface OwnerOption {
  org?: string;
}

/** Adds --org to a command that acts for one organization. */
export function withOwner(command: Command): Command {
  return command.option('--org <ORG>', 'id or name; by default POSTERN_ORG, or the only organization');
}

/** The option for another command line, if this one had it. */
export function orgOption(org: string | undefined): string {
  return org === undefined ? '' : ` --org ${shellWord(org)}`;
}

/** The organization of the option --org; undefined if it is not given. */
export async function organizationId(db: Db, idOrName: string | undefined): Promise<string | undefined> {
  return idOrName === undefined ? undefined : (await requireOrganization(db, idOrName)).id;
}

export async function requireDomain(db: Db, org: Organization, name: string): Promise<DomainRecord> {
  const list = `postern domain list --org ${shellWord(org.name)}`;
  return (
    (await findDomain(db, org.id, name)) ??
    missing(`${name} is not registered in ${org.name}; \`${list}\` lists its domains`)
  );
}

export async function requireUser(db: Db, email: string): Promise<User> {
  const found = await findUserByEmail(db, email);
  return found ?? missing(`there is no user with the address ${email}; \`postern user list\` shows them all`);
}

export const requireKey = byId(
  'api_keys',
  'key',
  findKey,
  '`postern key list --org ORG` shows them with their ids',
);

export const requirePause = byId(
  'auto_pauses',
  'auto-pause',
  (db, id) => findPause(db, id),
  '`postern pause list` shows them with their ids',
);

export const requireWebhook = byId(
  'webhooks',
  'webhook',
  findWebhook,
  '`postern webhook list` shows them with their ids',
);

export const requireRoute = byId(
  'receiving_routes',
  'route',
  findRoute,
  '`postern route list --org ORG` shows them with their ids',
);

export const requireReceived = byId(
  'received_mails',
  'received mail',
  (db, id) => findReceived(db, null, id),
  '`postern received list --org ORG` shows them with their ids',
);

export const requireReturnedId = byId(
  'inbound_mails',
  'returned mail',
  async (_, id) => id,
  '`postern returned list` shows them all',
);

const findEventId = byId('events', 'event', async (_, id) => id, '`postern webhook attempts ID` shows them');

/** Events are deleted before the posts that told of them, so a whole id is not looked up. */
export async function requireEventId(db: Db, id: string): Promise<string> {
  return isUuid(id) ? id.toLowerCase() : findEventId(db, id);
}

/** An id, or the end of one, so that it can be copied from a table or a log line. */
function byId<T>(
  table: Parameters<typeof idsEndingIn>[1],
  noun: string,
  find: (db: Db, id: string, orgId: null) => Promise<T | null>,
  advice: string,
): (db: Db, id: string) => Promise<T> {
  return async (db, id) => {
    const ids = await idsEndingIn(db, table, id);
    const found = ids.length === 0 ? null : await find(db, onlyOne(ids, id, noun), null);
    return found ?? missing(`there is no ${noun} with the id "${id}"; ${advice}`);
  };
}

/** The ways to name an email, for the help. */
export const emailIs = 'an emailId or its end, a Message-ID, a request id, or an address (its newest mail)';

/**
 * The email that an operator names by its id, the end of its id, its Message-ID, the id of the request that sent it, a queue
 * id in a host's reply, or an address, which stands for the newest email to it.
 */
export async function requireEmail(context: CommandContext, name: string): Promise<EmailRecord> {
  const id = await requireEmailId(context, name);
  return (await findEmail(await context.db(), id, null)) ?? noEmail(name);
}

export async function requireEmailId(context: CommandContext, name: string): Promise<string> {
  return (await findEmailId(context, name)) ?? noEmail(name);
}

export async function findEmailId(context: CommandContext, name: string): Promise<string | null> {
  const ids = await emailIdsOf(await context.db(), name);
  // Only the mail log has the ids of requests and the replies' words.
  const found = ids.length > 0 ? ids : await emailIdsInLog(context, name);
  return found.length === 0 ? null : onlyOne(found, name, 'email');
}

async function emailIdsInLog({ config }: CommandContext, name: string): Promise<string[]> {
  const log = await openLog(mailLogFile(config().dataDir));
  try {
    const search = createIdSearch(name);
    await findEmailsInLog(log, search);
    return search.emails();
  } finally {
    await log.close();
  }
}

function noEmail(name: string): never {
  missing(
    `there is no email with the id "${name}"; give an emailId or its end, a Message-ID, a request id, or a recipient's address`,
  );
}

const maxNamed = 3;

function onlyOne(ids: string[], name: string, noun: string): string {
  const [id, ...others] = ids;
  if (others.length === 0) return id!;
  const some = ids.slice(0, maxNamed).join(', ');
  const more = ids.length > maxNamed ? ' and more' : '';
  return missing(`"${name}" fits several ids of ${noun}s: ${some}${more}; give one of them`);
}

function missing(message: string): never {
  throw new Failure(message);
}
