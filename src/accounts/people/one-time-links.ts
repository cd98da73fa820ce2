/** One-time links of the dashboard: 256 random bits in the path, stored as their SHA-256. */
import { hash, randomBytes } from 'node:crypto';
import { insertLink, type LinkPurpose, type OneTimeLink } from '#accounts/rows/one-time.ts';
import type { Db } from '#platform/database/engine/open.ts';

const hour = 3_600_000;
const ttls: Record<LinkPurpose, number> = {
  'set-up': 24 * hour,
  invitation: 7 * 24 * hour,
  reset: 24 * hour,
  open: hour / 6,
  // `postern dev` replaces it at its next start.
  'sign-in': 10 * 365 * 24 * hour,
};

export interface MadeLink {
  /** Relative to the base URL. */
  path: string;
  expiresAt: number;
}

export async function makeLink(
  db: Db,
  { purpose, userId }: Pick<OneTimeLink, 'purpose' | 'userId'>,
  now: number,
): Promise<MadeLink> {
  const page = {
    'set-up': 'set-up',
    open: 'sign-in',
    'sign-in': 'sign-in',
    invitation: 'welcome',
    reset: 'welcome',
  }[purpose];
  const { hash, ...link } = newLink(page, now + ttls[purpose]);
  await insertLink(db, { hash, purpose, userId, expiresAt: link.expiresAt }, now);
  return link;
}

/** A link to join an organization. Its hash is stored with the invitation. */
export function newInvitationLink(now: number): MadeLink & { hash: string } {
  return newLink('join', now + ttls.invitation);
}

function newLink(page: string, expiresAt: number): MadeLink & { hash: string } {
  const token = randomBytes(32).toString('base64url');
  return { path: `/dashboard/${page}/${token}`, expiresAt, hash: tokenHash(token) };
}

/** The stored form of the tokens of links and sessions. Random tokens need neither a salt nor a slow hash. */
export function tokenHash(token: string): string {
  return hash('sha256', token);
}
