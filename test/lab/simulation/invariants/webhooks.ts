/** The webhooks of an email arrive in the order of its events, and each at least once. */
import type { Check } from './check.ts';

interface EventRow {
  id: string;
  position: number;
  /** Null: an event of the organization. */
  email_id: string | null;
}

/** By the first arrival of each event. */
const webhooksArriveInOrder: Check = ({ scene, rows }) => {
  const events = new Map(
    rows.all<EventRow>('select id, position, email_id from events').map((row) => [row.id, row]),
  );
  const last = new Map<string, number>();
  const seen = new Set<string>();
  for (const { endpoint, eventId, isTaken } of scene.book.posts) {
    const event = events.get(eventId);
    // Events of an organization have no order among themselves.
    if (!isTaken || !event?.email_id || seen.has(`${endpoint} ${eventId}`)) continue;
    seen.add(`${endpoint} ${eventId}`);
    const { position, email_id: emailId } = event;
    const name = `${endpoint} ${emailId}`;
    if (position < (last.get(name) ?? 0)) {
      const mail = scene.book.byEmailId.get(emailId)?.number;
      return {
        text: `${endpoint} got event ${eventId} of ${emailId} after a later one`,
        ...(mail !== undefined && { mail }),
      };
    }
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
       and not exists (select 1 from webhook_messages as message where event_id = events.id and (status = 'failed'
         or exists (select 1 from webhook_messages as first where first.webhook_id = message.webhook_id and first.due_at > ?)))`,
    Math.floor(scene.serviceTime),
  );
  const missing = open.find(({ id }) => !taken.has(id));
  if (!missing) return null;
  const mail = missing.email_id ? scene.book.byEmailId.get(missing.email_id)?.number : undefined;
  const [message] = rows.all<{ status: string }>(
    'select status from webhook_messages where event_id = ?',
    missing.id,
  );
  return {
    text: `the event ${missing.type} ${missing.id} was never posted; ${JSON.stringify(message ?? null)}`,
    ...(mail !== undefined && { mail }),
  };
};

export const webhooks = { webhooksArriveInOrder };
export const webhooksAtEnd = { everyEventIsPosted };
