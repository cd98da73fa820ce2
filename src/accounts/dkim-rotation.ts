/**
 * DKIM key rotation: a new key gets a selector of its own and signs from the DNS check that first finds its record. No mail is
 * signed with a key that receivers cannot look up, and the previous key's record must stay published for as long as mail that
 * it signed may be in the queue.
 */

import {
  type DkimAlgorithm,
  type DkimKeyRecord,
  dropPendingKeys,
  forgetRetiredKey,
  insertDkimKey,
  listWatchedKeys,
  promoteDkimKey,
  recordKeyCheck,
  retire,
  untilSent,
} from '#accounts/rows/dkim-keys.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { isRecent } from '#platform/base/clock.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { checkRecords, isUnknown } from './check-records.ts';
import { dkimRecord, newDkimKey } from './domains.ts';
import type { Seal } from './seal.ts';

/** The algorithms that sign the domain's mail. */
export function algorithmsOf({ otherKeys }: Pick<DomainRecord, 'otherKeys'>): DkimAlgorithm[] {
  const isDouble = otherKeys.some(({ algorithm, status }) => algorithm === 'ed25519' && status === 'signing');
  return isDouble ? ['rsa', 'ed25519'] : ['rsa'];
}

/** Creates a key of each algorithm that has no pending key yet; returns how many. */
export async function addKeys(
  db: Db,
  { id: domainId }: Pick<DomainRecord, 'id'>,
  algorithms: readonly DkimAlgorithm[],
  { seal, now }: { seal: Seal; now: number },
): Promise<number> {
  let added = 0;
  for (const algorithm of algorithms) {
    const { selector, publicKey, privateKey } = await newDkimKey(algorithm);
    const key = { domainId, algorithm, selector, publicKey, privateKey: seal.close(privateKey) };
    if (await insertDkimKey(db, key, now)) added += 1;
  }
  return added;
}

/** Stops signing with Ed25519; false if the domain had no such key. */
export async function endEd25519(
  db: Db,
  { id, orgId }: Pick<DomainRecord, 'id' | 'orgId'>,
  { now, keepMs }: { now: number; keepMs: number },
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const dropped = await dropPendingKeys(trx, id, 'ed25519');
    const keepUntil = await untilSent(trx, orgId, now + keepMs);
    return (await retire(trx, id, 'ed25519', keepUntil)) || dropped > 0;
  });
}

export interface KeyCheck {
  resolve: Resolve;
  now: number;
  /** The greatest age of mail in the queue. */
  keepMs: number;
}

export type KeyChange = 'signs' | 'gone' | null;

/** Looks a key up in DNS and acts on the result: a pending key starts to sign, a retired key without a record is deleted. */
export async function checkKey(
  db: Db,
  domainName: string,
  key: DkimKeyRecord,
  { resolve, now, keepMs }: KeyCheck,
): Promise<KeyChange> {
  const [record] = await checkRecords([dkimRecord(domainName, key)], resolve);
  if (key.status === 'pending' && record!.ok) {
    return (await promoteDkimKey(db, key, { now, keepUntil: now + keepMs })) ? 'signs' : null;
  }
  if (isDone(key, now) && !record!.ok && !isUnknown(record!)) {
    await forgetRetiredKey(db, key.id);
    return 'gone';
  }
  await recordKeyCheck(db, key.id, now);
  return null;
}

function isDone({ status, keepUntil }: DkimKeyRecord, now: number): boolean {
  return status === 'retired' && keepUntil! <= now;
}

const [minute, hour] = [60_000, 3_600_000];

/**
 * Most records are published soon, so the checks of a key get rarer with its age, from every minute to every hour. A retired
 * key is checked once no mail that it signed can be in the queue.
 */
function isDue(key: DkimKeyRecord, now: number): boolean {
  if (key.status === 'retired' && !isDone(key, now)) return false;
  const byAge = Math.max(minute, Math.min((now - key.createdAt) / 10, hour));
  return !isRecent(key.checkedAt ?? 0, now, key.status === 'retired' ? 6 * hour : byAge);
}

const pageSize = 100;
const firstId = '00000000-0000-0000-0000-000000000000';

interface KeyWatch extends Pick<KeyCheck, 'resolve' | 'keepMs'> {
  now(): number;
  /** Called when a key starts to sign. */
  onSigns(domainName: string, key: DkimKeyRecord): void;
}

/** A maintenance job: checks the next keys that are due. */
export function watchKeys(db: Db, { now: clock, onSigns, ...policy }: KeyWatch): () => Promise<number> {
  let after = firstId;
  return async () => {
    const now = clock();
    const keys = await listWatchedKeys(db, after, pageSize);
    after = keys.length === pageSize ? keys.at(-1)!.id : firstId;
    await Promise.all(
      keys
        .filter((key) => isDue(key, now))
        .map(async (key) => {
          const change = await checkKey(db, key.domainName, key, { ...policy, now });
          if (change === 'signs') onSigns(key.domainName, key);
        }),
    );
    return after === firstId ? 0 : keys.length;
  };
}
