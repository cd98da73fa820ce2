/** Links to the parts of a received mail. They need no key, and expire (platform/base/file-links.ts). */
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { createFileLinks, type FileLinks } from '#platform/base/file-links.ts';
import type { Secrets } from '#platform/base/secrets.ts';

export interface ReceivedLinks {
  raw: string;
  text: string;
  html: string;
  /** By position. */
  attachments: string[];
  expiresAt: number;
}

const dayMs = 86_400_000;

/** An application may read a mail hours after it was told of it. */
export function receivedLinks(secrets: Secrets, baseUrl: () => string): FileLinks {
  return createFileLinks(secrets, baseUrl, dayMs);
}

export function linksTo(
  { id, orgId, summary }: Pick<ReceivedMail, 'id' | 'orgId' | 'summary'>,
  links: Pick<FileLinks, 'sign'>,
  now: number,
): ReceivedLinks {
  const sign = (part: string) =>
    links.sign({ orgId, mailId: id, id: part }, `/api/public/received/${id}/parts/${part}`, now);
  const { url: raw, expiresAt } = sign('raw');
  return {
    raw,
    text: sign('text').url,
    html: sign('html').url,
    attachments: summary.attachments.map(({ position }) => sign(String(position)).url),
    expiresAt,
  };
}
