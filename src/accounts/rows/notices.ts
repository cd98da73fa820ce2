/**
 * The entries of the status that people have been notified of by mail, and when. A row is taken before its mail is sent, so that
 * one of several nodes sends it; an entry has one mail an hour at most, and all of them together have `maxAnHour`.
 */
import { countOf } from '#platform/database/engine/json-rows.ts';
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
    let left = maxAnHour - (await countOf(trx('notices').where('sent_at', '>', anHourAgo)));
    const taken: NoticeChange[] = [];
    for (const change of changes) {
      if (left <= 0) break;
      if (!(await take(trx, change, now))) continue;
      taken.push(change);
      left -= 1;
    }
    return taken;
  });
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
