/**
 * The entries of the status that people have been notified of by mail, and when. A row is taken before its mail is sent, so that
 * one of several nodes sends it; an entry has one mail an hour at most, all of them together have `maxAnHour`, and those that an
 * organization can bring about have shares of it.
 */
import { CountedMap } from '#platform/base/limits/counted-map.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { flag, json, number, records, text } from '#platform/database/engine/records.ts';

interface NoticeEntry {
  /** A cause of operate/condition/causes.ts, or `destination`. */
  kind: string;
  label: string;
  subject: string;
  path: string;
  /** The organization whose owners are notified; null: the operators. */
  orgId: string | null;
}

const notices = records({
  id: text,
  entry: json<NoticeEntry>(),
  /** True: reported as a problem; false: reported as solved. */
  isOpen: flag,
  sentAt: number,
});

export type Notice = ReturnType<typeof notices.read>;

const hourMs = 3_600_000;
const maxAnHour = 20;
/** The notices of one organization; and of all destinations, because an organization chooses those that its mail goes to. */
const maxOfOne = 12;

/** The entries that people believe to be open. */
export async function openNotices(db: Db): Promise<Notice[]> {
  return (await db('notices').where({ is_open: true }).orderBy('id')).map(notices.read);
}

export type NoticeChange = Omit<Notice, 'sentAt'>;

/** Takes the changes that may be reported now; the others are left for later. */
export async function takeNotices(db: Db, changes: NoticeChange[], now: number): Promise<NoticeChange[]> {
  return db.transaction(async (trx) => {
    // The second of two nodes counts what the first has taken.
    if (isPostgres(trx)) await trx.raw('lock table notices in share row exclusive mode');
    // After an hour without a mail, a solved entry is as if it had never been.
    const anHourAgo = now - hourMs;
    await trx('notices').where({ is_open: false }).where('sent_at', '<=', anHourAgo).delete();
    const sent = (await trx('notices').where('sent_at', '>', anHourAgo)).map(notices.read);
    const shares = new CountedMap();
    for (const { entry } of sent) shares.add(ownerOf(entry), 1);
    const taken: NoticeChange[] = [];
    for (const change of inTurn(changes)) {
      if (shares.total >= maxAnHour) break;
      const owner = ownerOf(change.entry);
      if ((owner !== '' && shares.of(owner) >= maxOfOne) || !(await take(trx, change, now))) continue;
      taken.push(change);
      shares.add(owner, 1);
    }
    return taken;
  });
}

/** Empty: this server. */
const ownerOf = ({ orgId, kind }: NoticeEntry) => orgId ?? (kind === 'destination' ? kind : '');

/** One of each owner, then the second of each. */
function inTurn(changes: NoticeChange[]): NoticeChange[] {
  const counts = new CountedMap();
  const turns = changes.map((change) => {
    const owner = ownerOf(change.entry);
    counts.add(owner, 1);
    return { change, turn: counts.of(owner) };
  });
  return turns.sort((a, b) => a.turn - b.turn).map(({ change }) => change);
}

async function take(trx: Trx, { id, entry, isOpen }: NoticeChange, now: number): Promise<boolean> {
  const row = notices.write({ id, entry, isOpen, sentAt: now });
  if (isOpen) {
    const added = await trx('notices').insert(row).onConflict('id').ignore().returning('id');
    return added.length > 0;
  }
  const due = trx('notices')
    .where({ id, is_open: true })
    .where('sent_at', '<=', now - hourMs);
  return (await due.update(row)) > 0;
}

/** Their mail could not be accepted: it is tried again. */
export async function giveNoticesBack(db: Db, changes: NoticeChange[], now: number): Promise<void> {
  for (const { id, isOpen } of changes) {
    const row = db('notices').where({ id, is_open: isOpen, sent_at: now });
    await (isOpen ? row.delete() : row.update({ is_open: true, sent_at: now - hourMs }));
  }
}
