/** The posts of an endpoint: a body, its type, and the headers that prove where it comes from. */
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import type { MakeReceivedBody } from './received/received-bodies.ts';
import type { WebhookFormatName } from './subscribed-types.ts';

const commonHeaders = { 'user-agent': 'Postern-Webhooks' };

interface SignAs {
  format: WebhookFormatName;
  /** Opened. */
  secrets: readonly string[];
  now: number;
}

/** The post of any event but a received mail, signed at the given time. */
export function signedPost(
  event: EventRecord,
  { format, secrets, now }: SignAs,
): { headers: Record<string, string>; body: string } {
  const { write, headersOf, contentType } = formatOf(format);
  const signing = { secrets, timestamp: Math.floor(now / 1000) };
  const body = write(event, signing);
  return {
    headers: { ...commonHeaders, 'content-type': contentType, ...headersOf(event.id, body, signing) },
    body,
  };
}

/** The post of a received mail. `release`: call it when the post has ended. */
export async function signedReceived(
  event: EventRecord,
  { format, secrets, now, url }: SignAs & { url: string },
  makeBody: MakeReceivedBody,
): Promise<{ headers: Record<string, string>; body: Buffer; release(): void }> {
  const signing = { secrets, timestamp: Math.floor(now / 1000) };
  const { contentType, body, release } = await makeBody(event, { url, format, signing });
  const headers = formatOf(format).headersOf(event.id, body, signing);
  return { headers: { ...commonHeaders, 'content-type': contentType, ...headers }, body, release };
}
