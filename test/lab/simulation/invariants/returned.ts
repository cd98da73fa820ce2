/** Returned mail: what is answered 250 is kept, and counts for its own delivery. */
import type { Check } from './check.ts';

/** Final before the report came, so that it changes nothing; a mail that is held in doubt is left to its release. */
const unchanged = ['canceled', 'expired', 'held'];

const nothingReturnedVanishes: Check = ({ scene, rows }) => {
  for (const { mail, recipient, kind, takenAt, messageId } of scene.book.returned) {
    if (takenAt === null) continue;
    const row = rows
      .deliveries()
      .find((one) => one.recipient === recipient && messageId.includes(one.message_id));
    if (!row || ['bounced', 'complained', ...unchanged].includes(row.status)) continue;
    return { text: `a ${kind} of ${recipient} was answered 250, and the delivery is ${row.status}`, mail };
  }
  return null;
};

const aReportCountsForItsOwn: Check = ({ scene, rows }) => {
  const complained = rows.deliveries().filter(({ status }) => status === 'complained');
  for (const { recipient, message_id, email_id } of complained) {
    const isOwn = (one: { recipient: string; messageId: string; kind: string }) =>
      one.kind === 'complaint' && one.recipient === recipient && one.messageId.includes(message_id);
    if (scene.book.returned.some(isOwn)) continue;
    const mail = scene.book.byEmailId.get(email_id)?.number ?? -1;
    return { text: `${recipient} has not complained, and its delivery says so`, mail };
  }
  return null;
};

export const returned = { nothingReturnedVanishes, aReportCountsForItsOwn };
