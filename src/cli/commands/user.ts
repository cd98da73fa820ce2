/**
 * `postern user`: the users of the dashboard. Passwords are never typed here: each user gets a one-time link, which is
 * printed for the operator to pass on.
 */
import { type Command, Option } from 'commander';
import type { MadeLink } from '#accounts/people/one-time-links.ts';
import { disableUser, enableUser, invite, makeUserLink } from '#accounts/people/people.ts';
import { type Role, roles } from '#accounts/people/roles.ts';
import { listMemberships, type Membership } from '#accounts/rows/memberships.ts';
import { listUsers, type User } from '#accounts/rows/users.ts';
import { address, name } from '#cli/args/arguments.ts';
import { organizationId, requireOrganization, requireUser } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { createAcceptHere } from '#cli/commands/email/accept-here.ts';
import { Failure } from '#cli/failure.ts';
import type { Cell } from '#cli/render/output.ts';
import { linkMail } from '#operate/notices/link-mail.ts';
import { createServerMailer } from '#operate/notices/server-mail.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';

interface CreateOptions {
  org?: string;
  email: string;
  name?: string;
  role: Role;
  operator?: boolean;
}

export function userCommands(program: Command, context: CommandContext): void {
  const user = program.command('user').description('Manage the users of the dashboard.');
  const named = (command: string, description: string) =>
    user.command(command).description(description).argument('<EMAIL>', 'address of the user', address);

  user
    .command('create')
    .description(
      'Create a dashboard user and print a one-time link for setting the password; it is mailed too if POSTERN_NOTICES_FROM is set.',
    )
    .option('--org <ORG>', 'id or name of the organization')
    .requiredOption('--email <E>', 'email address to sign in with', address)
    .option('--name <NAME>', 'name of the user; without it, the address', name)
    .addOption(
      new Option('--role <ROLE>', 'role in the organization: viewer, developer or owner')
        .choices(roles)
        .default('owner'),
    )
    .option('--operator', 'make the user an operator, who manages all organizations and the queue')
    .action((options: CreateOptions) => create(context, options));

  user
    .command('list')
    .description('List all users, or those of one organization.')
    .option('--org <ORG>', 'id or name of the organization')
    .action(({ org }: { org?: string }) => list(context, org));

  named(
    'disable',
    'Disable a user at once: end all sessions and refuse sign-ins. API keys keep working.',
  ).action(async (email: string) => {
    const { id } = await requireUser(await context.db(), email);
    await disableUser(await context.db(), id, context.now());
    await printStatus(context, email);
  });

  named('enable', 'Re-enable a disabled user, with the previous password and organizations.').action(
    async (email: string) => {
      const { id } = await requireUser(await context.db(), email);
      await enableUser(await context.db(), id);
      await printStatus(context, email);
    },
  );

  named(
    'reset',
    'Print a one-time link for setting a new password, and mail it if POSTERN_NOTICES_FROM is set; the old password works until then.',
  ).action((email: string) => reset(context, email));
}

async function create(context: CommandContext, options: CreateOptions): Promise<void> {
  const { db, out, now, config } = context;
  const { org, email, role, operator = false } = options;
  if (org === undefined && !operator)
    throw new Failure('the user would have no access; give an organization (--org ORG) or --operator');
  const orgId = await organizationId(await db(), org);
  const member = orgId === undefined ? null : { orgId, role };
  const person = { email, name: options.name ?? email, isOperator: operator };
  const { userId: id, link } = await invite(await db(), { ...person, member }, now());
  const url = link && urlOf(link, config().baseUrl);
  const expiresAt = link?.expiresAt ?? null;
  out.print(
    { id, email, operator, role: member && role, url, expiresAt: isoOrNull(expiresAt) },
    {
      fields: {
        id,
        email,
        link: url ?? 'none: the user already has a password',
        until: { time: expiresAt },
      },
    },
  );
  if (!link) return;
  const organization = orgId === undefined ? null : (await requireOrganization(await db(), orgId)).name;
  await mailLink(context, link, email, { organization, by: null });
  out.note('the link works once; anyone who has it can set the password');
}

async function list({ db, out }: CommandContext, org: string | undefined): Promise<void> {
  const users = await listUsers(await db(), await organizationId(await db(), org));
  const found: [User, Membership[]][] = [];
  for (const user of users) found.push([user, await listMemberships(await db(), user.id)]);
  out.print(
    found.map(([user, memberships]) => documentOf(user, memberships)),
    {
      head: ['ID', 'STATUS', 'EMAIL', 'SIGNED IN', 'CREATED', 'OF'],
      rows: found.map(([user, memberships]) => rowOf(user, memberships)),
      empty: 'There is no user yet; `postern user create` creates one.',
    },
  );
}

async function printStatus({ db, out }: CommandContext, email: string): Promise<void> {
  const user = await requireUser(await db(), email);
  const state = statusOf(user);
  out.print(
    { id: user.id, email: user.email, status: state },
    { fields: { id: user.id, email: user.email, status: { state } } },
  );
}

async function reset(context: CommandContext, address: string): Promise<void> {
  const { db, out, now, config } = context;
  const user = await requireUser(await db(), address);
  const { id, email } = user;
  const made = await makeUserLink(await db(), user, 'reset', now());
  const link = urlOf(made, config().baseUrl);
  out.print(
    { id, email, url: link, expiresAt: iso(made.expiresAt) },
    { fields: { id, email, link, until: { time: made.expiresAt } } },
  );
  await mailLink(context, made, email, null);
}

/** The printed link is valid whether it can be mailed or not. */
async function mailLink(
  context: CommandContext,
  link: MadeLink,
  to: string,
  invitation: { organization: string | null; by: null } | null,
): Promise<void> {
  const { noticesFrom: sender, mtaMaxAge: maxAgeMs, hostname, baseUrl } = context.config();
  if (sender === null) return;
  const accept = await createAcceptHere(context);
  const mailer = createServerMailer({ db: await context.db(), maxAgeMs, sender, accept });
  const { expiresAt } = link;
  const url = urlOf(link, baseUrl);
  const mail = linkMail({ to, invitation, url, expiresAt, hostname, now: context.now() });
  if (await mailer.send(mail)) context.out.note(`the link is mailed to ${to}`);
  else context.out.warn(`the link is not mailed: no organization has ${sender.domain}, verified`);
}

function urlOf(link: MadeLink, baseUrl: string): string {
  return baseUrl + link.path;
}

function statusOf({ disabledAt, passwordHash }: User): string {
  if (disabledAt !== null) return 'disabled';
  return passwordHash === null ? 'invited' : 'active';
}

function documentOf(user: User, memberships: Membership[]) {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    status: statusOf(user),
    operator: user.isOperator,
    secondFactor: user.totpSecret !== null,
    organizations: memberships.map(({ id, name: orgName, role }) => ({ id, name: orgName, role })),
    signedInAt: isoOrNull(user.signedInAt),
    createdAt: iso(user.createdAt),
  };
}

function rowOf(user: User, memberships: Membership[]): Cell[] {
  const [signedIn, created] = [
    { time: user.signedInAt, past: true },
    { time: user.createdAt, past: true },
  ];
  const organizations = memberships.map(({ name: orgName, role }) => `${orgName} (${role})`);
  const access = [...(user.isOperator ? ['operator'] : []), ...organizations].join(', ');
  return [user.id, { state: statusOf(user) }, user.email, signedIn, created, access];
}
