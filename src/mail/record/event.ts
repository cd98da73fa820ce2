/**
 * An event as users see it (docs/design.md section 3) in the feed, in the stream and in webhooks, whose body is its type,
 * timestamp and data. For an event of an email, `data` has the email's members in addition to those of the event's type.
 */

import type { EventRecord } from '#mail/record/rows/read-events.ts';
import { iso } from '#platform/base/clock.ts';

export interface OutwardEvent {
  id: string;
  type: string;
  timestamp: string;
  recipient: string | null;
  data: Record<string, unknown>;
}

export function outwardEvent({ id, type, at, recipient, data, email }: EventRecord): OutwardEvent {
  const about = email && {
    emailId: email.id,
    id: email.messageId,
    recipient,
    from: email.from,
    subject: email.subject,
    tags: email.tags,
    ...(email.isTest && { test: true }),
  };
  return { id, type, timestamp: iso(at), recipient, data: { ...about, ...data, ...about } };
}
