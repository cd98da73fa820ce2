/**
 * The messages of a send, signed: one for all recipients, or a copy for each where tracking makes them differ. The
 * copies have the same Message-ID and Date; the text part and the attachments are in all of them as they are.
 */
import { attached } from './attachment.ts';
import { limitOf, type MessageTracking, newAllowance, prepareTracking } from './html-tracking.ts';
import { composeMime, type Fields, toBytes } from './mime.ts';
import { composeRaw, type RawMessage } from './raw-message.ts';
import { type Composed, copiesFor } from './recipient-copies.ts';
import { type Signer, signatures } from './sign.ts';

/** Of fields, or of a message that was given whole. */
export function composeMessages(
  content: Fields | RawMessage,
  tracking: MessageTracking,
  signer: Signer,
): Composed {
  return 'raw' in content ? composeRaw(content, tracking, signer) : composeFields(content, tracking, signer);
}

function composeFields(fields: Fields, tracking: MessageTracking, signer: Signer): Composed {
  const allowance = newAllowance();
  const tracked = fields.html ? prepareTracking(fields.html, tracking, allowance) : null;
  const attachments = fields.attachments.map(attached);
  let messageId = fields.messageId;
  const compose = (html: string | undefined): Buffer => {
    const { message, messageId: used } = composeMime(fields, html, attachments);
    messageId = used;
    return toBytes({ ...message, fields: [...signatures(message, signer, fields.date), ...message.fields] });
  };
  const copies = tracked
    ? copiesFor(tracking.trackers, (tracker) => compose(tracked(tracker)))
    : { messages: [compose(fields.html)], base: null };
  return { messageId, ...copies, trackedLinks: limitOf(allowance) };
}
