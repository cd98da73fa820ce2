/**
 * The operator's rules, which all nodes read once a second: `slow` limits the rate of a destination until a given time;
 * `hold` and `bounce` say what becomes of all mail to a recipient domain, until they are removed. Rules whose time is up are
 * ignored, and deleted when the next one is written.
 */
import { query } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import type { StoredSuspension } from './suspensions.ts';

export type RuleKind = 'slow' | 'hold' | 'bounce';

const columns = {
  destination: text,
  perMinute: orNull(number),
  reason: text,
  createdAt: number,
  until: orNull(number),
};
const rules = records({ ...columns, kind: value<RuleKind>() });

export type DestinationRule = ReturnType<typeof rules.read>;

/** A domain is either held or bounced, so that one replaces the other. */
const replaced: Record<RuleKind, RuleKind[]> = {
  slow: ['slow'],
  hold: ['hold', 'bounce'],
  bounce: ['hold', 'bounce'],
};

export async function putRule(db: Db, rule: DestinationRule): Promise<void> {
  const { destination, kind, createdAt } = rule;
  await db.transaction(async (trx) => {
    await trx('destination_rules').where('until', '<=', createdAt).delete();
    await trx('destination_rules').where({ destination }).whereIn('kind', replaced[kind]).delete();
    await trx('destination_rules').insert(rules.write(rule)).onConflict(['destination', 'kind']).merge();
  });
}

/** Returns the rules that were in force and are now removed. */
export async function removeRules(
  db: Db,
  destination: string,
  kinds: RuleKind[],
  now: number,
): Promise<DestinationRule[]> {
  const found = (await listRules(db, now)).filter(
    (rule) => rule.destination === destination && kinds.includes(rule.kind),
  );
  await db('destination_rules').where({ destination }).whereIn('kind', kinds).delete();
  return found;
}

/** Lists the rules that are in force at `now`. */
async function listRules(db: Db, now: number): Promise<DestinationRule[]> {
  const rows = await db('destination_rules').orderBy(['destination', 'kind']);
  return rows.map(rules.read).filter(({ until }) => until === null || until > now);
}

const orders = records({ ...columns, kind: value<RuleKind | 'suspend'>() });

/** A rule or a suspension. */
export type DestinationOrder = ReturnType<typeof orders.read>;

/** Lists what the operator has ordered for destinations and domains, as far as it is in force at `now`: in one statement. */
export async function listOrders(db: Db, now: number): Promise<DestinationOrder[]> {
  const found = await query<object>(
    db,
    `select * from (
       select destination, 'suspend' as kind, null as per_minute, reason, created_at, until from suspensions
       union all select destination, kind, per_minute, reason, created_at, until from destination_rules
     ) as orders order by case when kind = 'suspend' then 0 else 1 end, destination, kind`,
    [],
  );
  return found.map(orders.read).filter(({ until }) => until === null || until > now);
}

export function suspensionOrder(suspension: StoredSuspension): DestinationOrder {
  return { ...suspension, kind: 'suspend', perMinute: null };
}
