/**
 * Times in the database that a clock that was ahead has left in the future. Each says since when something is so, or when it was
 * last done: until the clock gets there, it would not be done again, and nothing can be so since a time to come. All tables
 * are short.
 */
import type { Db } from '#platform/database/engine/open.ts';

const columns = {
  auto_pauses: ['since', 'released_at'],
  certificates: ['failing_since'],
  dkim_keys: ['checked_at'],
  domains: ['checked_at', 'failing_since', 'mx_missing_since', 'verified_at'],
  notices: ['sent_at'],
  organizations: ['created_at', 'paused_at', 'quota_since'],
  sessions: ['seen_at'],
  warm_ups: ['began_at'],
  webhooks: ['failing_since'],
};

/** Rights that last from their `created_at` to their `expires_at`. */
const lasting = ['invitations', 'one_time_tokens', 'sessions'];

/** The longest time between two looks at the records of a domain. */
const maxCheckMs = 86_400_000;

/** Makes what is later than `now` by more than `slackMs` now, and makes due what such a clock has scheduled. */
export async function endTimesToCome(db: Db, now: number, slackMs: number): Promise<void> {
  for (const [table, names] of Object.entries(columns)) {
    for (const name of names)
      await db(table)
        .where(name, '>', now + slackMs)
        .update({ [name]: now });
  }
  for (const table of lasting)
    await db(table)
      .where('created_at', '>', now + slackMs)
      .update({ expires_at: db.raw('expires_at - (created_at - ?)', [now]), created_at: now });
  await endReplacedKeys(db, now, slackMs);
  await db('domains')
    .where('check_at', '>', now + maxCheckMs)
    .update({ check_at: now });
  await db('certificates')
    .where('updated_at', '>', now + slackMs)
    .update({ attempt_at: now, updated_at: now });
}

/** A key that was replaced, perhaps because it had leaked, works for its overlap, and not for as long as the clock was ahead. */
async function endReplacedKeys(db: Db, now: number, slackMs: number): Promise<void> {
  const made = await db('api_keys')
    .where('created_at', '>', now + slackMs)
    .select('id', 'org_id', 'label', 'created_at');
  for (const { id, org_id, label, created_at } of made) {
    await db('api_keys')
      .where({ org_id, label })
      .where('ends_at', '>=', created_at)
      .decrement('ends_at', created_at - now);
    await db('api_keys').where({ id }).update({ created_at: now });
  }
}

/** After the clock has leapt: what has been failing has not failed for longer than before. */
export async function moveFailures(db: Db, byMs: number): Promise<void> {
  await db('webhooks').whereNotNull('failing_since').increment('failing_since', byMs);
}

/** After the clock has leapt: the days of this node's new addresses have not become longer. */
export async function moveWarmUps(db: Db, addresses: string[], byMs: number, now: number): Promise<void> {
  await db('warm_ups').whereIn('address', addresses).increment('began_at', byMs);
  await db('warm_ups').where('began_at', '>', now).update({ began_at: now });
}
