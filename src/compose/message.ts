/**
 * The messages of a send, signed: one for all recipients, or a copy for each where tracking makes them differ. The
 * copies have the same Message-ID and Date; the text part and the attachments are in all of them as they are.
 */
import { composeMime, type Fields } from './mime.ts';
import { type Signer, sign } from './sign.ts';
import { type Tracker, trackable } from './tracking.ts';

export interface Tracking {
  opens: boolean;
  clicks: boolean;
  /** One for each recipient, in their order. */
  trackers: Tracker[];
}

export interface Composed {
  /** Without angle brackets. */
  messageId: string;
  /** One, or one for each recipient. */
  messages: Buffer[];
}

export async function composeMessages(fields: Fields, tracking: Tracking, signer: Signer): Promise<Composed> {
  const tracked = trackable(fields.html ?? '', tracking);
  const bodies = fields.html && tracked ? tracking.trackers.map(tracked) : [fields.html];
  const messages: Buffer[] = [];
  let messageId = fields.messageId;
  for (const html of bodies) {
    const composed = await composeMime({ ...fields, html });
    messages.push(sign(composed.raw, signer, fields.date));
    messageId = composed.messageId;
  }
  return { messageId, messages };
}
