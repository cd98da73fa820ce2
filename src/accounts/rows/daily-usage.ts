/**
 * An organization's usage of a day: requests, accepted recipients, and the current window of the limit per second. One row for
 * each organization and day, shared by all nodes, so it survives a restart.
 */

import { type RequestCount, type RequestLimits, type Taken, takeRequest } from '#accounts/limits.ts';
import { insertOf } from '#platform/database/engine/insert-rows.ts';
import { type JsonColumns, jsonItems, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { number, records, text } from '#platform/database/engine/records.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';

export interface UsageRequest {
  orgId: string;
  day: string;
  limits: RequestLimits;
  now: number;
  /** One of each if it is left out. */
  count?: RequestCount | undefined;
}

/** Counts many requests in one transaction, one after the other. */
export async function recordRequests(db: Db, requests: UsageRequest[]): Promise<Taken[]> {
  return inSharedCommit(db, async (trx) => {
    const usages = await lockUsages(trx, requests);
    const taken = requests.map((request) => {
      const usage = usages.get(nameOf(request))!;
      const one = takeRequest(usage, request.limits, request.now, request.count);
      usages.set(nameOf(request), { ...usage, ...one.usage });
      return one;
    });
    await saveUsages(trx, usages.values());
    return taken;
  });
}

interface Day {
  orgId: string;
  day: string;
}

const dayUsages = records({
  orgId: text,
  day: text,
  requests: number,
  emails: number,
  secondSince: number,
  secondRequests: number,
});

export type DayUsage = ReturnType<typeof dayUsages.read>;

const nameOf = ({ orgId, day }: Day) => `${orgId} ${day}`;

const key: JsonColumns<Day> = { org_id: ['uuid', ({ orgId }) => orgId], day: ['text', ({ day }) => day] };

/** Returns the days' rows, inserted if they are missing, and locks them until the transaction ends. */
async function lockUsages(trx: Trx, days: Day[]): Promise<Map<string, DayUsage>> {
  const find = readUsages(trx, days);
  const found = find.resultOf(await query(trx, find.sql, find.values));
  return withMissing(trx, days, found);
}

/** Inserts the days that `found`, the result of `readUsages`, does not have. */
export async function withMissing(
  trx: Trx,
  days: Day[],
  found: Map<string, DayUsage>,
): Promise<Map<string, DayUsage>> {
  const all = sorted(days);
  if (found.size === all.length) return found;
  const keys = all.map(({ orgId, day }) => ({ org_id: orgId, day }));
  const [insert, values] = insertOf(trx, 'daily_usage', keys);
  await query(trx, `${insert} where true on conflict (org_id, day) do nothing`, values);
  const find = readUsages(trx, all);
  return find.resultOf(await query(trx, find.sql, find.values));
}

/** Each day once, and in an order, so that two nodes that lock or insert rows never deadlock. */
function sorted(days: Day[]): Day[] {
  const named = [...new Map(days.map((one) => [nameOf(one), one]))].sort(([a], [b]) => (a < b ? -1 : 1));
  return named.map(([, day]) => day);
}

/** The days' rows that exist, which it locks. */
export function readUsages(trx: Trx, days: Day[]) {
  const { from, column, json } = jsonItems(trx, key);
  return {
    sql: `select ${dayUsages.columnsOf('used')} from ${from} cross join daily_usage as used
     where used.org_id = ${column('org_id')} and used.day = ${column('day')}
     order by used.org_id, used.day ${isPostgres(trx) ? 'for update of used' : ''}`,
    values: [json(sorted(days))],
    columns: dayUsages.columns,
    resultOf: (rows: object[]) => new Map(rows.map(dayUsages.read).map((usage) => [nameOf(usage), usage])),
  };
}

export async function readUsage(
  db: Db,
  orgId: string,
  day: string,
): Promise<{ requests: number; emails: number }> {
  const row = await db('daily_usage').where({ org_id: orgId, day }).select('requests', 'emails').first();
  return row ?? { requests: 0, emails: 0 };
}

async function saveUsages(trx: Trx, usages: Iterable<DayUsage>): Promise<void> {
  const { from, column, json } = jsonItems<DayUsage>(trx, {
    ...key,
    requests: ['integer', ({ requests }) => requests],
    second_since: ['bigint', ({ secondSince }) => secondSince],
    second_requests: ['integer', ({ secondRequests }) => secondRequests],
  });
  await query(
    trx,
    `update daily_usage set requests = ${column('requests')}, second_since = ${column('second_since')},
       second_requests = ${column('second_requests')}
     from ${from} where daily_usage.org_id = ${column('org_id')} and daily_usage.day = ${column('day')}`,
    [json(usages)],
  );
}

/** Takes back requests that were counted and then refused with 429. */
export async function giveBack(db: Db, orgId: string, day: string, refused: RequestCount): Promise<void> {
  await inSharedCommit(db, (trx) => addUsages(trx, [{ orgId, day, emails: 0, refused }]));
}

type Addition = Day & { emails: number; refused: RequestCount };

/** Adds accepted recipients, and takes back requests that were refused with 429 after they were counted. */
export async function addUsages(trx: Trx, additions: Addition[]): Promise<void> {
  const { from, column, json } = jsonItems<Addition>(trx, {
    ...key,
    emails: ['integer', ({ emails }) => emails],
    refused: ['integer', ({ refused }) => refused.day],
    refused_second: ['integer', ({ refused }) => refused.second],
  });
  const less = (name: string, refused: string) =>
    `${name} = case when daily_usage.${name} > ${refused} then daily_usage.${name} - ${refused} else 0 end`;
  await query(
    trx,
    `update daily_usage set emails = daily_usage.emails + ${column('emails')},
       ${less('requests', column('refused'))}, ${less('second_requests', column('refused_second'))}
     from ${from} where daily_usage.org_id = ${column('org_id')} and daily_usage.day = ${column('day')}`,
    [json(additions)],
  );
}
