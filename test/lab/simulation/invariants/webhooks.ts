/** The webhooks of an email arrive in the order of its events, and each at least once. */
import type { Book } from '../book.ts';
import type { Check } from './check.ts';

interface EventRow {
  position: number;
  /** Null: an event of the organization. */
  email_id: string | null;
}

/** The posts of a book that were checked: how many, the events, and the last position of each email's. */
const checked = new WeakMap<Book, { count: number; seen: Set<string>; last: Map<string, number> }>();

/** By the first arrival of each event. */
const webhooksArriveInOrder: Check = ({ scene: { book }, rows }) => {
  const done = checked.get(book) ?? { count: 0, seen: new Set(), last: new Map() };
  checked.set(book, done);
  const { seen, last } = done;
  const added = book.posts.slice(done.count);
  done.count = book.posts.length;
  for (const { endpoint, eventId, isTaken } of added) {
    const [event] = rows.all<EventRow>('select position, email_id from events where id = ?', eventId);
    // Events of an organization have no order among themselves.
    if (!isTaken || !event?.email_id || seen.has(`${endpoint} ${eventId}`)) continue;
    seen.add(`${endpoint} ${eventId}`);
    const { position, email_id: emailId } = event;
    const name = `${endpoint} ${emailId}`;
    if (position < (last.get(name) ?? 0))
      return { text: `${endpoint} got event ${eventId} of ${emailId} after a later one`, emailId };
    last.set(name, position);
  }
  return null;
};

/** Except those that wait for a later attempt: a clock that is set back again and again makes for many failures. */
const everyEventIsPosted: Check = ({ scene, rows }) => {
  const taken = new Set(scene.book.posts.filter(({ isTaken }) => isTaken).map(({ eventId }) => eventId));
  const open = rows.all<{ id: string; type: string; email_id: string | null }>(
    `select events.id, events.type, events.email_id from events join webhooks on webhooks.org_id = events.org_id
     where webhooks.status = 'active' and position > after_position
       and not exists (select 1 from webhook_messages as message
         where message.webhook_id = webhooks.id and event_id = events.id and (status = 'failed'
         or exists (select 1 from webhook_messages as first where first.webhook_id = message.webhook_id and first.due_at > ?)))`,
    Math.floor(scene.serviceTime),
  );
  const missing = open.find(({ id }) => !taken.has(id));
  if (!missing) return null;
  const [message] = rows.all<{ status: string }>(
    'select status from webhook_messages where event_id = ?',
    missing.id,
  );
  return {
    text: `the event ${missing.type} ${missing.id} was never posted; ${JSON.stringify(message ?? null)}`,
    emailId: missing.email_id,
  };
};

export const webhooks = { webhooksArriveInOrder };
export const webhooksAtEnd = { everyEventIsPosted };
