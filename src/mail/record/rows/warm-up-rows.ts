/**
 * The days and allowances of new source addresses (mail/deliver/warm-up.ts): a row for each address and group of receivers that has
 * been sent to. They are the server's, whose addresses they are; organizations see none of them. An address of `allReceivers` has
 * been in use since before there were such rows.
 */

import { type ReceiverGroup, receiverGroupOf } from '#mail/deliver/receivers.ts';
import type { StoredWarmUp, Taking } from '#mail/deliver/warm-up.ts';
import {
  allowanceOf,
  type Complaints,
  dayMs,
  endOf,
  isWarm,
  newWarmUp,
  nextDay,
  reserveOf,
  type WarmUp,
  warm,
} from '#mail/deliver/warm-up-plan.ts';
import { isRecent } from '#platform/base/clock.ts';
import { query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { number, records, text, value } from '#platform/database/engine/records.ts';
import { routesOf } from './destination-status-rows.ts';

const warmUps = records({
  address: text,
  receivers: value<ReceiverGroup>(),
  day: number,
  step: number,
  beganAt: number,
  used: number,
  deferred: number,
});

const allReceivers = '*';
/** The address of the row that says when the database was upgraded to the version that has these rows. */
const upgraded = '*';

/** For so long after the upgrade, each address that the server uses counts as one that it has been using. */
const adoptMs = dayMs;

export async function readWarmUps(db: Db): Promise<StoredWarmUp[]> {
  const rows = await db('warm_ups').whereNot({ receivers: allReceivers }).orderBy(['address', 'receivers']);
  return rows.map(warmUps.read);
}

/** `sources`: the addresses of this node, which are adopted after an upgrade. */
export async function readWarmAddresses(db: Db, sources: string[], now: number): Promise<string[]> {
  if (sources.length > 0 && (await isUpgradeRecent(db, now))) await adopt(db, sources);
  return db('warm_ups').where({ receivers: allReceivers }).pluck('address');
}

async function isUpgradeRecent(db: Db | Trx, now: number): Promise<boolean> {
  const row = await db('warm_ups').where({ address: upgraded }).first('began_at');
  return row !== undefined && isRecent(Number(row.began_at), now, adoptMs);
}

async function adopt(db: Db | Trx, addresses: string[]): Promise<void> {
  const rows = addresses.map((address) => ({
    ...warmUps.write({ ...warm, address }),
    receivers: allReceivers,
  }));
  await db('warm_ups').insert(rows).onConflict(['address', 'receivers']).ignore();
}

/** The plan begins with the first mail. */
export async function takeAllowance(
  db: Db,
  { address, receivers, want, leavesReserve, over, deferred, unused, mayBegin }: Taking,
  now: number,
): Promise<{ warmUp: WarmUp; granted: number }> {
  return db.transaction(async (trx) => {
    const stored = await lockedRow(trx, { address, receivers }, now);
    if (isWarm(stored)) return { warmUp: stored, granted: want };
    const givenBack = unused?.day === stored.day ? unused.count : 0;
    const counted = {
      ...stored,
      used: stored.used + over - givenBack,
      deferred: stored.deferred + deferred,
    };
    const begins = mayBegin && now >= endOf(counted);
    const day = begins ? nextDay(counted, await complaintsOf(trx, receivers, now), now) : counted;
    const allowance = allowanceOf(day.step);
    const left = allowance - (leavesReserve ? reserveOf(allowance) : 0) - day.used;
    const granted = isWarm(day) ? want : Math.min(want, Math.max(left, 0));
    const warmUp = { ...day, used: day.used + granted };
    await trx('warm_ups').where({ address, receivers }).update(warmUps.write(warmUp));
    return { warmUp, granted };
  });
}

async function lockedRow(
  trx: Trx,
  key: { address: string; receivers: ReceiverGroup },
  now: number,
): Promise<WarmUp> {
  const found = async () => {
    const rows = trx('warm_ups')
      .where({ address: key.address })
      .whereIn('receivers', [key.receivers, allReceivers])
      .orderBy('receivers');
    const [row] = await (isPostgres(trx) ? rows.forUpdate() : rows);
    if (row?.receivers === allReceivers) return warm;
    return row === undefined ? null : warmUps.pick('day', 'step', 'beganAt', 'used', 'deferred').read(row);
  };
  const known = await found();
  if (known) return known;
  if (await isUpgradeRecent(trx, now)) {
    await adopt(trx, [key.address]);
    return warm;
  }
  await trx('warm_ups')
    .insert(warmUps.write({ ...key, ...newWarmUp(now) }))
    .onConflict(['address', 'receivers'])
    .ignore();
  return (await found())!;
}

const maxDomains = 1_000;

/** About mail of the last days to these receivers, from any of our addresses. */
async function complaintsOf(trx: Trx, receivers: ReceiverGroup, now: number): Promise<Complaints> {
  const rows = await query<{ name: string; complained: number; delivered: number }>(
    trx,
    `select name, sum(complained) as complained, sum(delivered) as delivered from group_statistics
     where kind = 'domain' and day >= ? and day <= ? group by name
     order by sum(complained) desc, sum(delivered) desc limit ?`,
    [now - 2 * dayMs, now, maxDomains],
  );
  const routes = await routesOf(
    trx,
    rows.map(({ name }) => name),
  );
  const ofGroup = rows.filter(({ name }) => receiverGroupOf(routes.get(name)) === receivers);
  return {
    complained: ofGroup.reduce((sum, row) => sum + Number(row.complained), 0),
    delivered: ofGroup.reduce((sum, row) => sum + Number(row.delivered), 0),
  };
}
