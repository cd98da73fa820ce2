/**
 * The signed messages of a send: one for all recipients, or a copy for each if tracking makes them differ. All copies have
 * the same Message-ID, Date, text part and attachments.
 */

import { withSafeIds } from '#mail/compose/content-ids/content-ids.ts';
import {
  linkLimitIfExceeded,
  type MessageTracking,
  newAllowance,
  prepareTracking,
  type Tracker,
} from '#mail/compose/tracking/html-tracking.ts';
import { isSubscribed, unsubscribeFields } from '#mail/compose/tracking/list-unsubscribe.ts';
import { packMessage } from '#platform/values/packed-message.ts';
import { attachedParts } from './attachment.ts';
import { composeMime, type Fields, headOf, toBytes } from './mime.ts';
import { composeRaw, type RawMessage } from './raw-message.ts';
import { type Composed, copiesFor, type Unpacked } from './recipient-copies.ts';
import { type DkimSigner, signatures } from './sign.ts';
import { textFromHtml } from './text-from-html.ts';

/** `content` is the fields of a send, or a message that the caller gave whole. */
export function composeMessages(
  content: Fields | RawMessage,
  tracking: MessageTracking,
  signer: DkimSigner,
): Composed {
  const composed =
    'raw' in content ? composeRaw(content, tracking, signer) : composeFields(content, tracking, signer);
  return { ...composed, packed: packMessage(composed.base ?? composed.messages[0]!) };
}

function composeFields(given: Fields, tracking: MessageTracking, signer: DkimSigner): Unpacked {
  const fields = withSafeIds(withText(given));
  const allowance = newAllowance();
  const tracked = fields.html ? prepareTracking(fields.html, tracking, allowance) : null;
  const attached = attachedParts(fields.attachments, Boolean(fields.html));
  const head = headOf(fields);
  const names = Object.keys(fields.headers);
  const isPersonal = isSubscribed(tracking.trackers, () => names);
  const compose = (html: string | undefined, tracker?: Tracker): Buffer => {
    const added = isPersonal && tracker ? unsubscribeFields(tracker, names) : [];
    const own = { ...head, fields: [...added, ...head.fields] };
    const { message } = composeMime(fields, html, attached, own);
    return toBytes({ ...message, fields: [...signatures(message, signer, fields.date), ...message.fields] });
  };
  const copyFor = (tracker: Tracker) => compose(tracked ? tracked(tracker) : fields.html, tracker);
  const copies =
    tracked || isPersonal
      ? copiesFor(tracking.trackers, copyFor)
      : { messages: [compose(fields.html)], base: null };
  return { messageId: head.messageId, ...copies, trackedLinks: linkLimitIfExceeded(allowance) };
}

function withText(fields: Fields): Fields {
  const { html, text, textFromHtml: isWanted } = fields;
  return isWanted && html && text === undefined
    ? { ...fields, text: textFromHtml(html) ?? undefined }
    : fields;
}
