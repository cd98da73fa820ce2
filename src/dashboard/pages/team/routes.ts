/** An organization's members, for its owners. The page never shows a member's other organizations. */
import { z } from 'zod';
import type { MadeLink } from '../../../accounts/one-time-links.ts';
import { type Role, roles } from '../../../accounts/roles.ts';
import { changeRole, inviteAgain, inviteMember, removeMember } from '../../../accounts/team.ts';
import { findMember, listMembers, type Member } from '../../../db/accounts/memberships.ts';
import { checkForm, type Errors, emailField, oneLine, valuesOf } from '../../forms.ts';
import {
  type DashboardPage,
  type Flash,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { pageOf } from '../../pagination.ts';

export const teamPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/team': (visit, parts) => list(visit, parts),
    'POST /dashboard/o/:org/team': invite,
    'POST /dashboard/o/:org/team/:id/role': setRole,
    'POST /dashboard/o/:org/team/:id/link': newLink,
    'POST /dashboard/o/:org/team/:id/remove': remove,
  },
};

const pageSize = 50;

const roleSays: Record<Role, string> = {
  viewer: 'can see everything except the team',
  developer: 'can also manage emails, domains, keys, suppressions and webhooks',
  owner: 'can also manage the team',
};

async function list(visit: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const { rows, ...pager } = await pageOf(visit, pageSize, (page) => listMembers(db, visit.org.id, page));
  const data = {
    ...pager,
    rows: rows.map((member) => present(member, visit.user.id)),
    roles: roles.map((role) => [role, roleSays[role]]),
    values: valuesOf(visit.form),
    errors,
  };
  return show('team/team', 'Team', data, { status: Object.keys(errors).length > 0 ? 422 : 200 });
}

/** Only what concerns the organization. */
function present(member: Member, me: string) {
  const { id, name, email, role, joinedAt, signedInAt, totpSecret, passwordHash, disabledAt } = member;
  return {
    id,
    name,
    email,
    role,
    joinedAt,
    signedInAt,
    isMe: id === me,
    hasSecondFactor: totpSecret !== null,
    isInvited: passwordHash === null,
    isDisabled: disabledAt !== null,
  };
}

const roleField = z.enum(roles, { error: 'Choose a role.' });

const fields = z.object({
  email: emailField,
  name: z
    .union([
      z
        .string()
        .regex(/^\s*$/)
        .transform(() => null),
      oneLine('a name'),
    ])
    .default(null),
  role: roleField,
});

async function invite(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const { org, user, form, base, now } = visit;
  const checked = checkForm(form, fields);
  if (!checked.ok) return list(visit, parts, checked.errors);
  const { email, role } = checked.values;
  const name = checked.values.name ?? email;
  const invited = await inviteMember(
    parts.db,
    { orgId: org.id, email, name, role },
    { now, byOperator: user.isOperator },
  );
  if ('fault' in invited) return list(visit, parts, { email: faults[invited.fault] });
  if (invited.link === null)
    return redirect(`${base}/team`, `${email} is now a member and signs in as before.`);
  return showLink(invited.link, name, parts);
}

const faults = {
  member: 'A member with this address already exists.',
  elsewhere:
    'This address already has an account on this server. Ask the operator of the server to add it to your organization.',
};

function showLink({ path, expiresAt }: MadeLink, name: string, { baseUrl }: PageParts): PageAnswer {
  return show('team/invited', 'Team', { link: baseUrl() + path, expiresAt, name });
}

async function newLink(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const member = await memberIn(visit, parts);
  const byOperator = visit.user.isOperator;
  const link = await inviteAgain(parts.db, { orgId: visit.org.id, user: member, byOperator }, visit.now);
  if (link) return showLink(link, member.name, parts);
  const text = `You cannot create a new link for ${member.email}. Ask the operator of this server.`;
  return redirect(`${visit.base}/team`, { tone: 'bad', text });
}

async function setRole(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const member = await memberIn(visit, parts);
  const checked = checkForm(visit.form, z.object({ role: roleField }));
  if (!checked.ok) return redirect(`${visit.base}/team`, { tone: 'bad', text: checked.errors.role! });
  const { role } = checked.values;
  const moved = await changeRole(parts.db, { orgId: visit.org.id, userId: member.id, role }, visit.now);
  if (moved === 'gone') throw notFound('member');
  return redirect(
    await whereTo(visit, parts),
    moved === 'done' ? `${member.name} is now ${role}.` : lastOwner(member.name),
  );
}

async function remove(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const member = await memberIn(visit, parts);
  const moved = await removeMember(parts.db, { orgId: visit.org.id, userId: member.id });
  if (moved === 'gone') throw notFound('member');
  return redirect(
    await whereTo(visit, parts),
    moved === 'done' ? `${member.name} was removed from the team.` : lastOwner(member.name),
  );
}

function lastOwner(name: string): Flash {
  return { tone: 'bad', text: `${name} is the only owner. Make another member an owner first.` };
}

/** A member who gave up the owner role can no longer see the team page. */
async function whereTo({ user, org, base }: OrgVisit, { db }: PageParts): Promise<string> {
  const isOwner = user.isOperator || (await findMember(db, org.id, user.id))?.role === 'owner';
  return isOwner ? `${base}/team` : '/dashboard';
}

/** Another organization's member is not found. */
async function memberIn({ context, org }: OrgVisit, { db }: PageParts): Promise<Member> {
  const { id } = context.params as { id: string };
  const member = z.guid().safeParse(id).success ? await findMember(db, org.id, id.toLowerCase()) : null;
  if (!member) throw notFound('member');
  return member;
}
