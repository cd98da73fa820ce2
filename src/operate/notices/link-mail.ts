/**
 * The mail with a one-time link: an invitation to the dashboard, or a reset of a password. It has no text of the person who asked
 * for it.
 */
import { utcMinute } from '#platform/base/clock.ts';
import type { ServerMail } from './server-mail.ts';

interface LinkMail {
  to: string;
  /** Null: a reset. */
  invitation: { organization: string | null; by: string | null } | null;
  url: string;
  expiresAt: number;
  hostname: string;
  now: number;
}

export function linkMail({ to, invitation, url, expiresAt, hostname, now }: LinkMail): ServerMail {
  const organization = invitation?.organization ?? `the mail server ${hostname}`;
  const by = invitation?.by ? ` by ${invitation.by}` : '';
  const [subject, why] = invitation
    ? [
        `You are invited to ${organization}`,
        `You have been invited${by} to the dashboard of ${organization}. Open this link to accept:`,
      ]
    : [
        'Choose a new password',
        `A new password for ${to} on ${hostname} has been asked for. Choose it here:`,
      ];
  return {
    to: [to],
    subject,
    content: [
      { text: why },
      { url },
      {
        text: `The link works once, until ${utcMinute(expiresAt)}. If you did not expect this mail, ignore it.`,
      },
    ],
    expiresAfter: Math.floor((expiresAt - now) / 1000),
  };
}
