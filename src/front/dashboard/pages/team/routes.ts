/** An organization's members, for its owners. The page never shows a member's other organizations. */
import { z } from 'zod';
import type { MadeLink } from '#accounts/people/one-time-links.ts';
import { type Role, roles } from '#accounts/people/roles.ts';
import {
  changeRole,
  inviteAgain,
  inviteMember,
  type MembershipChange,
  maxInvitations,
  removeMember,
} from '#accounts/people/team.ts';
import { findMember, listMembers, type Member } from '#accounts/rows/memberships.ts';
import { listInvitations, removeInvitation } from '#accounts/rows/open-invitations.ts';
import { requireSecondFactor } from '#accounts/rows/organizations.ts';
import { responsibleAddresses } from '#accounts/rows/users.ts';
import { itemIn, showForm } from '#front/dashboard/form-page.ts';
import { checkForm, type Errors, emailField, nullable, oneLine } from '#front/dashboard/forms.ts';
import { type DashboardPage, type OrgVisit, type PageParts, redirect, show } from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { pageOf } from '#front/dashboard/pagination.ts';

const roleField = z.enum(roles, { error: 'Choose a role.' });
const fields = z.object({ email: emailField, name: nullable(oneLine('a name')), role: roleField });

const reasons = {
  member: 'A member with this address already exists.',
  'too many': `Your organization has ${maxInvitations} open invitations, which is the maximum. Remove one first.`,
};

export const teamPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/team': (visit, parts) => list(visit, parts),
    async 'POST /dashboard/o/:org/team'(visit, parts) {
      const { org, user, form, base, now } = visit;
      const checked = checkForm(form, fields);
      if (!checked.ok) return list(visit, parts, checked.errors);
      const { email, role } = checked.values;
      const name = checked.values.name ?? email;
      const person = { orgId: org.id, email, name, role };
      const invited = await inviteMember(parts.db, person, { now, byOperator: user.isOperator });
      if ('reason' in invited) return list(visit, parts, { email: reasons[invited.reason] });
      if (invited.link) return handOver(visit, parts, invited.link, { email, name });
      return redirect(`${base}/team`, `${email} is now a member and signs in as before.`);
    },
    'POST /dashboard/o/:org/team/second-factor': changeSecondFactor,
    async 'POST /dashboard/o/:org/team/:id/role'(visit, parts) {
      const { id: userId, name } = await memberIn(visit, parts.db);
      const checked = checkForm(visit.form, z.object({ role: roleField }));
      if (!checked.ok) return redirect(`${visit.base}/team`, { tone: 'bad', text: checked.errors.role! });
      const { role } = checked.values;
      const change = await changeRole(parts.db, { orgId: visit.org.id, userId, role }, visit.now);
      return changed(visit, parts.db, name, change, `${name} is now ${role}.`);
    },
    async 'POST /dashboard/o/:org/team/:id/link'(visit, parts) {
      const member = await memberIn(visit, parts.db);
      const byOperator = visit.user.isOperator;
      const link = await inviteAgain(parts.db, { orgId: visit.org.id, member, byOperator }, visit.now);
      if (link) return handOver(visit, parts, link, member);
      return redirect(`${visit.base}/team`, { tone: 'bad', text: `${member.name} has already accepted.` });
    },
    async 'POST /dashboard/o/:org/team/:id/remove'(visit, { db }) {
      const { id: userId, name } = await memberIn(visit, db);
      const change = await removeMember(db, { orgId: visit.org.id, userId });
      return changed(visit, db, name, change, `${name} was removed from the team.`);
    },
    async 'POST /dashboard/o/:org/team/invitations/:id/remove'(visit, { db }) {
      const remove = async (id: string, orgId: string) => (await removeInvitation(db, orgId, id)) || null;
      await itemIn(visit, 'invitation', remove);
      return redirect(`${visit.base}/team`, 'The invitation was removed.');
    },
  },
};

const pageSize = 50;

const roleSays: Record<Role, string> = {
  viewer: 'can see everything except the team',
  developer: 'can also manage emails, domains, keys, suppressions and webhooks',
  owner: 'can also manage the team',
};

async function list(visit: OrgVisit, { db, config, linkMails }: PageParts, errors: Errors = {}) {
  const { rows, ...pager } = await pageOf(visit, pageSize, (page) => listMembers(db, visit.org.id, page));
  const data = {
    ...pager,
    invitations: pager.isFirst ? await listInvitations(db, visit.org.id, visit.now) : [],
    isRequired: visit.org.requiresSecondFactor,
    rows: rows.map((member) => present(member, visit.user.id)),
    notices: {
      problem: await linkMails.problem(),
      from: config.noticesFrom?.address,
      to: await responsibleAddresses(db, visit.org.id),
    },
    roles: roles.map((role) => [role, roleSays[role]]),
  };
  return showForm('team/team', 'Team', visit, data, errors);
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
    // Somebody who is signed in may have come by a link, as with `postern dev`.
    isInvited: passwordHash === null && id !== me,
    isDisabled: disabledAt !== null,
  };
}

/** Only somebody who has a second factor turns it on, and so keeps access. */
async function changeSecondFactor({ org, user, form, base }: OrgVisit, { db, log }: PageParts) {
  const isRequired = form.get('required') === 'yes';
  if (isRequired && user.totpSecret === null) {
    const text = 'Turn on two-factor authentication for your own account first.';
    return redirect(`${base}/team`, { tone: 'bad', text });
  }
  await requireSecondFactor(db, org.id, isRequired);
  const now = isRequired ? 'required' : 'optional';
  log.info({ by: user.email, organization: org.name }, `two-factor authentication is now ${now}`);
  return redirect(`${base}/team`, `Two-factor authentication is now ${now} in ${org.name}.`);
}

/**
 * Mails the link, so that only the person gets it. A server that sends no mail shows it. A person who has it can make the account
 * of that address: an owner who could be shown it after twenty invitations would make those of other people.
 */
async function handOver(
  { org, user, base }: OrgVisit,
  { linkMails, baseUrl }: PageParts,
  link: MadeLink,
  { email, name }: { email: string; name: string },
) {
  if (await linkMails.invite(link, { email, org, by: user.email }))
    return redirect(`${base}/team`, `An invitation was sent to ${email}.`);
  const problem = await linkMails.problem();
  if (problem === null && !user.isOperator) {
    const text = `The invitation of ${email} was not mailed: the organization has sent all that it may in this hour, or to this person. Invite this person again later.`;
    return redirect(`${base}/team`, { tone: 'bad', text });
  }
  const { path, expiresAt } = link;
  return show('team/invited', 'Team', {
    link: baseUrl() + path,
    expiresAt,
    name,
    problem,
  });
}

/** After a change of a member. A person who gave up the owner role does not see the team page. */
async function changed(
  { user, org, base }: OrgVisit,
  db: PageParts['db'],
  name: string,
  change: MembershipChange,
  text: string,
) {
  if (change === 'gone') throw notFound('member');
  const isOwner = user.isOperator || (await findMember(db, org.id, user.id))?.role === 'owner';
  return redirect(
    isOwner ? `${base}/team` : '/dashboard',
    change === 'done'
      ? text
      : { tone: 'bad', text: `${name} is the only owner. Make another member an owner first.` },
  );
}

function memberIn(visit: OrgVisit, db: PageParts['db']): Promise<Member> {
  return itemIn(visit, 'member', (id, orgId) => findMember(db, orgId, id));
}
