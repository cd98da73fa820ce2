/**
 * `postern user`: who may use the dashboard. Nobody's password is ever typed here: each gets a one-time link, which is
 * printed and can be sent on by whatever way is at hand.
 */
import { type Command, Option } from 'commander';
import type { MadeLink } from '../../accounts/one-time-links.ts';
import { disableUser, enableUser, invite, makeUserLink } from '../../accounts/people.ts';
import { type Role, roles } from '../../accounts/roles.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import { listMemberships, type Membership } from '../../db/accounts/memberships.ts';
import { listUsers, type User } from '../../db/accounts/users.ts';
import { address, name } from '../args/arguments.ts';
import { requireOrganization, requireUser } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';

interface CreateOptions {
  org?: string;
  email: string;
  name?: string;
  role: Role;
  operator?: boolean;
}

export function userCommands(program: Command, { db, out, now, config }: CommandContext): void {
  const user = program.command('user').description('Manage the users of the dashboard.');
  const linkOf = (made: MadeLink) => config().baseUrl + made.path;

  user
    .command('create')
    .description('Create a dashboard user and print a one-time link for setting the password.')
    .option('--org <ORG>', 'id or name of the organization')
    .requiredOption('--email <E>', 'email address to sign in with', address)
    .option('--name <NAME>', 'name of the user; without it, the address', name)
    .addOption(
      new Option('--role <ROLE>', 'role in the organization: viewer, developer or owner')
        .choices(roles)
        .default('owner'),
    )
    .option('--operator', 'make the user an operator, who manages all organizations and the queue')
    .action(async ({ org, email, name: called, role, operator = false }: CreateOptions) => {
      if (org === undefined && !operator)
        throw new Failure('the user would have no access; give an organization (--org ORG) or --operator');
      const { id: orgId } = org === undefined ? { id: null } : await requireOrganization(await db(), org);
      const member = orgId === null ? null : { orgId, role };
      const person = { email, name: called ?? email, isOperator: operator };
      const { userId, link } = await invite(await db(), { ...person, member }, now());
      const url = link && linkOf(link);
      const expiresAt = link?.expiresAt ?? null;
      out.print(
        { id: userId, email, operator, role: member && role, url, expiresAt: isoOrNull(expiresAt) },
        {
          facts: [
            ['id', userId],
            ['email', email],
            ['link', url ?? 'none: the user already has a password'],
            ['until', { time: expiresAt }],
          ],
        },
      );
      if (url) out.note('the link works once; anyone who has it can set the password');
    });

  user
    .command('list')
    .description('List all users, or those of one organization.')
    .option('--org <ORG>', 'id or name of the organization')
    .action(async ({ org }: { org?: string }) => {
      const found = org === undefined ? undefined : await requireOrganization(await db(), org);
      const all = await listUsers(await db(), found?.id);
      const rows = await Promise.all(
        all.map(async (each) => ({ each, of: await listMemberships(await db(), each.id) })),
      );
      out.print(
        rows.map(({ each, of }) => userDocument(each, of)),
        {
          head: ['ID', 'STATUS', 'EMAIL', 'SIGNED IN', 'CREATED', 'OF'],
          rows: rows.map(({ each, of }) => [
            each.id,
            { state: stateOf(each) },
            each.email,
            { time: each.signedInAt },
            { time: each.createdAt },
            [each.isOperator && 'operator', ...of.map((one) => `${one.name} (${one.role})`)]
              .filter(Boolean)
              .join(', '),
          ]),
          empty: 'There is no user yet; `postern user create` creates one.',
        },
      );
    });

  user
    .command('disable')
    .description('Disable a user at once: end all sessions and refuse sign-ins. API keys keep working.')
    .argument('<EMAIL>', 'address of the user', address)
    .action(async (email: string) => {
      const { id } = await requireUser(await db(), email);
      await disableUser(await db(), id, now());
      await printState(email);
    });

  user
    .command('enable')
    .description('Re-enable a disabled user, with the previous password and organizations.')
    .argument('<EMAIL>', 'address of the user', address)
    .action(async (email: string) => {
      const { id } = await requireUser(await db(), email);
      await enableUser(await db(), id);
      await printState(email);
    });

  async function printState(email: string): Promise<void> {
    const found = await requireUser(await db(), email);
    out.print(
      { id: found.id, email: found.email, status: stateOf(found) },
      {
        facts: [
          ['id', found.id],
          ['email', found.email],
          ['status', { state: stateOf(found) }],
        ],
      },
    );
  }

  user
    .command('reset')
    .description('Print a one-time link for setting a new password; the old password works until then.')
    .argument('<EMAIL>', 'address of the user', address)
    .action(async (email: string) => {
      const found = await requireUser(await db(), email);
      const link = await makeUserLink(await db(), found, 'reset', now());
      out.print(
        { id: found.id, email: found.email, url: linkOf(link), expiresAt: iso(link.expiresAt) },
        {
          facts: [
            ['id', found.id],
            ['email', found.email],
            ['link', linkOf(link)],
            ['until', { time: link.expiresAt }],
          ],
        },
      );
    });
}

function stateOf({ disabledAt, passwordHash }: User): string {
  if (disabledAt !== null) return 'disabled';
  return passwordHash === null ? 'invited' : 'active';
}

function userDocument(user: User, memberships: Membership[]) {
  return {
    ...{ id: user.id, email: user.email, name: user.name, status: stateOf(user), operator: user.isOperator },
    secondFactor: user.totpSecret !== null,
    organizations: memberships.map(({ id, name: called, role }) => ({ id, name: called, role })),
    signedInAt: isoOrNull(user.signedInAt),
    createdAt: iso(user.createdAt),
  };
}
