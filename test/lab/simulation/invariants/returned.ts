/** Returned mail: what is answered 250 is kept, and counts for its own delivery. */
import type { Check } from './check.ts';

/** Final before the report came, so that it changes nothing; a mail that is held in doubt is left to its release. */
const unchanged = ['canceled', 'expired', 'held'];

const nothingReturnedVanishes: Check = ({ scene, rows }) => {
  const of = Map.groupBy(rows.deliveries(), ({ recipient }) => recipient);
  for (const { mail, recipient, kind, takenAt, messageId } of scene.book.returned) {
    if (takenAt === null) continue;
    const row = of.get(recipient)?.find(({ message_id }) => messageId.includes(message_id));
    if (!row || ['bounced', 'complained', ...unchanged].includes(row.status)) continue;
    return { text: `a ${kind} of ${recipient} was answered 250, and the delivery is ${row.status}`, mail };
  }
  return null;
};

const aReportCountsForItsOwn: Check = ({ scene, rows }) => {
  const of = Map.groupBy(scene.book.returned, ({ kind, recipient }) => `${kind} ${recipient}`);
  for (const { status, recipient, message_id, email_id } of rows.deliveries()) {
    if (status !== 'complained') continue;
    const own = of.get(`complaint ${recipient}`) ?? [];
    if (own.some(({ messageId }) => messageId.includes(message_id))) continue;
    return { text: `${recipient} has not complained, and its delivery says so`, emailId: email_id };
  }
  return null;
};

export const returned = { nothingReturnedVanishes, aReportCountsForItsOwn };
