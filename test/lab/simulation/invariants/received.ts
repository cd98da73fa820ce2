/** Mail that comes in for applications: what is answered 250 is kept, once. */
import type { Check } from './check.ts';

interface Row {
  message_id: string;
  count: number;
}

const receivedMailIsKeptOnce: Check = ({ scene, rows }) => {
  if (scene.book.received.length === 0) return null;
  const kept = new Map(
    rows
      .all<Row>('select message_id, count(*) as count from received_mails group by message_id')
      .map(({ message_id, count }) => [message_id, count]),
  );
  for (const { messageId, takenAt, doubts } of scene.book.received) {
    const count = kept.get(messageId) ?? 0;
    const mayBeOld = takenAt !== null && scene.maxAgeOf(takenAt) > scene.config.keepReceived;
    if (takenAt !== null && count === 0 && !mayBeOld)
      return { text: `${messageId} was answered 250, and is not kept` };
    const max = doubts + Number(takenAt !== null);
    if (takenAt !== null && count > max)
      return { text: `${messageId} is kept ${count} times, after ${max} tries that may have arrived` };
  }
  return null;
};

export const received = { receivedMailIsKeptOnce };
