/** Invitations by mail (POSTERN_NOTICES_FROM). An organization's owners send a bounded number an hour from each node. */
import type { MadeLink } from '#accounts/people/one-time-links.ts';
import { linkMail } from '#operate/notices/link-mail.ts';
import type { ServerMailer } from '#operate/notices/server-mail.ts';
import type { Clock } from '#platform/base/clock.ts';
import { CountedMap } from '#platform/base/limits/counted-map.ts';

interface InvitationParts {
  mailer: ServerMailer | null;
  hostname: string;
  baseUrl(): string;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

interface Invited {
  email: string;
  org: { id: string; name: string };
  /** The address of the person who invites. */
  by: string;
}

/** False: the link must be passed on by hand. */
export type SendInvitation = (link: MadeLink, invited: Invited) => Promise<boolean>;

const maxAnHour = 20;
const hourMs = 3_600_000;

export function createInvitations({
  mailer,
  hostname,
  baseUrl,
  clock,
  onError,
}: InvitationParts): SendInvitation {
  let hour = 0;
  let sent = new CountedMap();
  return async ({ path, expiresAt }, { email, org, by }) => {
    const now = clock.now();
    if (Math.floor(now / hourMs) !== hour) sent = new CountedMap();
    hour = Math.floor(now / hourMs);
    if (mailer === null || sent.of(org.id) >= maxAnHour) return false;
    sent.add(org.id, 1);
    const invitation = { organization: org.name, by };
    const mail = linkMail({ to: email, invitation, url: baseUrl() + path, expiresAt, hostname, now });
    return mailer.send(mail).catch((error) => {
      onError('an invitation could not be mailed', error);
      return false;
    });
  };
}
