/** Accepts an owner's invitation: signed in with the account of its address, or with a new account. */
import { acceptAsNew, acceptInvitation, hasAccount } from '#accounts/people/team.ts';
import { findInvitation, type PendingInvitation } from '#accounts/rows/open-invitations.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import {
  type DashboardPage,
  type PageAnswer,
  type PageParts,
  type PageVisit,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { linkHash, linkIsOver, newPassword } from '#front/dashboard/pages/sign-in/one-time-page.ts';
import { startSession } from '#front/dashboard/pages/sign-in/routes.ts';
import { compareKey } from '#platform/values/address.ts';

export const joinPage: DashboardPage = {
  open: {
    'GET /dashboard/join/:token': async (visit, parts) => form(visit, await guestOf(visit, parts)),
    'POST /dashboard/join/:token': join,
  },
};

interface Guest {
  hash: string;
  invitation: PendingInvitation;
  organization: string;
  /** Signed in, with the address of the invitation or another. */
  as: 'signed out' | 'the same' | 'another';
}

async function join(visit: PageVisit, parts: PageParts): Promise<PageAnswer> {
  const guest = await guestOf(visit, parts);
  if (guest.as === 'another') return form(visit, guest, 'Sign out first.');
  if (guest.as === 'signed out') return joinAsNew(visit, parts, guest);
  const orgId = await acceptInvitation(parts.db, guest.hash, visit.user!, visit.now);
  if (orgId === null) throw linkIsOver(advice, 'invitation');
  return redirect(`/dashboard/o/${orgId}`, `You are now a member of ${guest.organization}.`);
}

async function joinAsNew(visit: PageVisit, parts: PageParts, guest: Guest): Promise<PageAnswer> {
  // Before the password is hashed, because this uses up no link: one could be posted all the time.
  if (await hasAccount(parts.db, guest.invitation)) return form(visit, guest, taken);
  const password = await newPassword(visit, parts, guest.invitation.email);
  if ('problem' in password) return form(visit, guest, password.problem);
  const accepted = await acceptAsNew(parts.db, guest.hash, password.hash, visit.now);
  if (accepted === 'over') throw linkIsOver(advice, 'invitation');
  if (accepted === 'has account') return form(visit, guest, taken);
  const to = `/dashboard/o/${guest.invitation.orgId}`;
  return startSession(visit, parts, accepted, to, 'Your password is set.');
}

function form({ context }: PageVisit, guest: Guest, error?: string): PageAnswer {
  const { organization, as, invitation } = guest;
  const { email, role } = invitation;
  const title = `Join ${organization}`;
  const signIn = `/dashboard/sign-in?to=${encodeURIComponent(context.path)}`;
  return show(
    'join/join',
    title,
    { organization, as, email, role, signIn, error },
    { status: error ? 422 : 200 },
  );
}

async function guestOf(visit: PageVisit, { db }: PageParts): Promise<Guest> {
  const { user, now } = visit;
  const hash = linkHash(visit);
  const invitation = await findInvitation(db, hash, now);
  const org = invitation && (await findOrganization(db, invitation.orgId));
  if (!org) throw linkIsOver(advice, 'invitation');
  const isSame = user !== null && compareKey(user.email) === compareKey(invitation.email);
  const as = isSame ? 'the same' : user ? 'another' : 'signed out';
  return { hash, invitation, organization: org.name, as };
}

const taken = 'This address has an account. Sign in with it, or ask the operator for a link.';
const advice =
  'It was accepted, removed or replaced, or has expired. If you have accepted it, sign in. If not, ask for a new one.';
