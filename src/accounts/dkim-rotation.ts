/**
 * New DKIM keys for a domain that has one: made under a selector of their own, watched for in DNS, and used from the look
 * that finds them. Nothing is signed with a key that nobody can look up, and the record of the one before must stay for as
 * long as mail that it has signed may wait in the queue.
 */
import {
  type DkimAlgorithm,
  type DkimKeyRecord,
  dropPendingKeys,
  forgetRetiredKey,
  insertDkimKey,
  listWatchedKeys,
  promoteDkimKey,
  retire,
  touchDkimKey,
} from '../db/accounts/dkim-keys.ts';
import type { DomainRecord } from '../db/accounts/domains-table.ts';
import type { Db } from '../db/engine/open.ts';
import { checkRecords, dkimRecord, isUnknown, newDkimKey, type Resolve } from './domains.ts';
import type { Seal } from './seal.ts';

/** What the domain's mail is signed with. */
export function algorithmsOf({ otherKeys }: Pick<DomainRecord, 'otherKeys'>): DkimAlgorithm[] {
  const isDouble = otherKeys.some(({ algorithm, status }) => algorithm === 'ed25519' && status === 'signing');
  return isDouble ? ['rsa', 'ed25519'] : ['rsa'];
}

/** Makes a key of each algorithm of which none waits for its record yet; answers for how many. */
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

/** Ed25519 ends; false where the domain had no such key. */
export async function endEd25519(
  db: Db,
  { id }: Pick<DomainRecord, 'id'>,
  { now, keepMs }: { now: number; keepMs: number },
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const dropped = await dropPendingKeys(trx, id, 'ed25519');
    return (await retire(trx, id, 'ed25519', now + keepMs)) || dropped > 0;
  });
}

export interface KeyCheck {
  resolve: Resolve;
  now: number;
  /** The greatest age of mail in the queue. */
  keepMs: number;
}

export type KeyChange = 'signs' | 'gone' | null;

/** Looks a key up, and does what follows from that: a new one signs, a retired one that is out of DNS is forgotten. */
export async function checkKey(
  db: Db,
  domainName: string,
  key: DkimKeyRecord,
  { resolve, now, keepMs }: KeyCheck,
): Promise<KeyChange> {
  const [seen] = await checkRecords([dkimRecord(domainName, key)], resolve);
  if (key.status === 'pending' && seen!.ok) {
    return (await promoteDkimKey(db, key, { now, keepUntil: now + keepMs })) ? 'signs' : null;
  }
  if (isDone(key, now) && !seen!.ok && !isUnknown(seen!)) {
    await forgetRetiredKey(db, key.id);
    return 'gone';
  }
  await touchDkimKey(db, key.id, now);
  return null;
}

function isDone({ status, keepUntil }: DkimKeyRecord, now: number): boolean {
  return status === 'retired' && keepUntil! <= now;
}

const [minute, hour] = [60_000, 3_600_000];

/** A record is usually published soon or late: looks become rarer with the wait, from each minute to each hour. */
function isDue(key: DkimKeyRecord, now: number): boolean {
  if (key.status === 'retired' && !isDone(key, now)) return false;
  const pause = key.status === 'retired' ? 6 * hour : (now - key.createdAt) / 10;
  return (
    now - (key.checkedAt ?? 0) >= Math.max(minute, Math.min(pause, key.status === 'retired' ? pause : hour))
  );
}

const pageSize = 100;
const firstId = '00000000-0000-0000-0000-000000000000';

interface KeyWatch extends Pick<KeyCheck, 'resolve' | 'keepMs'> {
  now(): number;
  /** Told of a key that signs from now on. */
  onSigns(domainName: string, key: DkimKeyRecord): void;
}

/** A chore: looks at the next keys for which it is time. */
export function watchKeys(db: Db, { now: clock, onSigns, ...watching }: KeyWatch): () => Promise<number> {
  let after = firstId;
  return async () => {
    const now = clock();
    const keys = await listWatchedKeys(db, after, pageSize);
    after = keys.length === pageSize ? keys.at(-1)!.id : firstId;
    await Promise.all(
      keys
        .filter((key) => isDue(key, now))
        .map(async (key) => {
          const change = await checkKey(db, key.domainName, key, { ...watching, now });
          if (change === 'signs') onSigns(key.domainName, key);
        }),
    );
    return after === firstId ? 0 : keys.length;
  };
}
