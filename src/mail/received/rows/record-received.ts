/**
 * Records received mail: its rows, its store and its events in one transaction, many mails at once. The commit comes before the
 * 250. A mail that its organization's store has no room for leaves nothing.
 */
import { receivedEvent } from '#mail/received/received-mail.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { insertReceived, type NewReceivedMail } from './received-mails.ts';

/** The records of one mail: one for each route that took it. */
export type Reception = NewReceivedMail[];

/** `full`: the store of an organization has no room. */
export type RecordedReception = 'kept' | 'full';

export async function recordReceived(
  db: Db,
  receptions: readonly Reception[],
  storeBytes: number,
): Promise<RecordedReception[]> {
  const results = await inSharedCommit(db, async (trx) => {
    let stored = await lockStores(trx, receptions.flat());
    const answers = receptions.map((mails): RecordedReception => {
      const after = new Map(stored);
      for (const { orgId, size } of mails) after.set(orgId, (after.get(orgId) ?? 0) + size);
      if (mails.some(({ orgId }) => after.get(orgId)! > storeBytes)) return 'full';
      stored = after;
      return 'kept';
    });
    const kept = receptions.filter((_, index) => answers[index] === 'kept').flat();
    await insertReceived(trx, kept);
    await insertRows(trx, 'events', kept.map(eventOf));
    failpoint('receiving');
    return answers;
  });
  failpoint('received');
  return results;
}

/** In the order of the organizations, so that two nodes never wait for each other. Returns the bytes that are stored. */
async function lockStores(trx: Trx, mails: NewReceivedMail[]): Promise<Map<string, number>> {
  const ids = [...new Set(mails.map(({ orgId }) => orgId))].sort();
  const rows = await trx('received_stores')
    .whereIn('org_id', ids)
    .orderBy('org_id')
    .forUpdate()
    .select('org_id', 'bytes');
  return new Map(rows.map((row) => [row.org_id as string, Number(row.bytes)]));
}

function eventOf(mail: NewReceivedMail) {
  const { orgId, recipients, at } = mail;
  return eventRow({
    orgId,
    type: 'email.received',
    recipient: recipients[0]!,
    at,
    data: receivedEvent(mail),
  });
}
