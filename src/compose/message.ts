/**
 * The messages of a send, signed: one for all recipients, or a copy for each where tracking makes them differ. The
 * copies have the same Message-ID and Date; the text part and the attachments are in all of them as they are.
 */
import { composeGiven, type Given } from './given.ts';
import { composeMime, type Fields, toBytes } from './mime.ts';
import { type Signer, signatures } from './sign.ts';
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

/** Of fields, or of a message that was given whole. */
export function composeMessages(content: Fields | Given, tracking: Tracking, signer: Signer): Composed {
  return 'raw' in content
    ? composeGiven(content, tracking, signer)
    : composeFields(content, tracking, signer);
}

function composeFields(fields: Fields, tracking: Tracking, signer: Signer): Composed {
  const tracked = trackable(fields.html ?? '', tracking);
  const bodies = fields.html && tracked ? tracking.trackers.map(tracked) : [fields.html];
  const messages: Buffer[] = [];
  let messageId = fields.messageId;
  for (const html of bodies) {
    const { message, messageId: used } = composeMime({ ...fields, html });
    const signed = [...signatures(message, signer, fields.date), ...message.fields];
    messages.push(toBytes({ ...message, fields: signed }));
    messageId = used;
  }
  return { messageId, messages };
}
