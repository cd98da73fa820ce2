/**
 * One-time links by mail (POSTERN_NOTICES_FROM): invitations, and resets that people ask for themselves. Each node sends a bounded
 * number an hour.
 */
import type { MadeLink } from '#accounts/people/one-time-links.ts';
import { makeUserLink } from '#accounts/people/people.ts';
import type { User } from '#accounts/rows/users.ts';
import { linkMail } from '#operate/notices/link-mail.ts';
import type { ServerMailer } from '#operate/notices/server-mail.ts';
import type { Clock } from '#platform/base/clock.ts';
import { CountedMap } from '#platform/base/limits/counted-map.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { compareKey } from '#platform/values/address.ts';

interface LinkMailParts {
  mailer: ServerMailer | null;
  db: Db;
  config: Config;
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

export interface LinkMails {
  /** Null: this server can send mail to its users; else why it cannot, in a sentence. */
  problem(): Promise<string | null>;
  /** False: the link must be passed on by hand. */
  invite(link: MadeLink, invited: Invited): Promise<boolean>;
  /** The old password is valid until the link is used. */
  reset(user: Pick<User, 'id' | 'email'>): Promise<void>;
}

const hourMs = 3_600_000;
/** One organization sends so many, in all and to one address: a stranger must not get one every few minutes for good. */
const maxInvitations = { inAll: 20, toOne: 3 };
const maxResets = { ofUser: 3, ofAll: 200 };

export function createLinkMails(parts: LinkMailParts): LinkMails {
  const { mailer, db, config, baseUrl, clock, onError } = parts;
  let hour = 0;
  let invitations = new CountedMap();
  let resets = new CountedMap();
  const startHour = () => {
    const current = Math.floor(clock.now() / hourMs);
    if (current === hour) return;
    hour = current;
    invitations = new CountedMap();
    resets = new CountedMap();
  };

  async function problem(): Promise<string | null> {
    const sender = config.noticesFrom;
    if (mailer === null || sender === null) return 'POSTERN_NOTICES_FROM has no sender for it.';
    if (await mailer.isReady()) return null;
    return `No organization has the domain of its sender, ${sender.domain}, verified.`;
  }

  async function send(
    { path, expiresAt }: MadeLink,
    to: string,
    invitation: { organization: string; by: string } | null,
  ): Promise<boolean> {
    const { hostname } = config;
    const mail = linkMail({
      to,
      invitation,
      url: baseUrl() + path,
      expiresAt,
      hostname,
      now: clock.now(),
    });
    return mailer!.send(mail).catch((error) => {
      onError(invitation ? 'an invitation could not be mailed' : 'a reset could not be mailed', error);
      return false;
    });
  }

  return {
    problem,
    async invite(link, { email, org, by }) {
      startHour();
      const toOne = `${org.id} ${compareKey(email)}`;
      if (mailer === null || invitations.of(org.id) >= maxInvitations.inAll) return false;
      if (invitations.of(toOne) >= maxInvitations.toOne) return false;
      for (const sent of [org.id, toOne]) invitations.add(sent, 1);
      return send(link, email, { organization: org.name, by });
    },
    async reset({ id, email }) {
      startHour();
      if (resets.of(id) >= maxResets.ofUser || resets.total >= maxResets.ofAll) return;
      resets.add(id, 1);
      // A link that cannot be mailed would end the one that the person may have.
      if ((await problem()) !== null) return;
      await send(await makeUserLink(db, { id }, 'reset', clock.now()), email, null);
    },
  };
}
