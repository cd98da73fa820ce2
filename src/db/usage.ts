/**
 * An organization's use of the day: requests, accepted recipients, and the open window of the limit per second.
 * One row an organization and day, shared by all nodes and safe over a restart.
 */
import { type RequestLimits, type Taken, takeRequest, type Usage } from '../accounts/limits.ts';
import type { Db, Trx } from './open.ts';

export interface Take {
  orgId: string;
  day: string;
  limits: RequestLimits;
  now: number;
}

/** Counts many requests in one transaction, each in its turn. */
export async function takeAll(db: Db, takes: Take[]): Promise<Taken[]> {
  return db.transaction(async (trx) => {
    const usages = new Map<string, Usage>();
    // In one order everywhere, so that two nodes never wait for each other.
    for (const id of [...new Set(takes.map(rowOf))].sort())
      usages.set(id, await lockUsage(trx, ...parts(id)));
    const taken = takes.map((take) => {
      const one = takeRequest(usages.get(rowOf(take))!, take.limits, take.now);
      usages.set(rowOf(take), one.usage);
      return one;
    });
    for (const [id, usage] of usages) await saveUsage(trx, ...parts(id), usage);
    return taken;
  });
}

const rowOf = ({ orgId, day }: { orgId: string; day: string }) => `${orgId} ${day}`;
const parts = (id: string) => id.split(' ') as [orgId: string, day: string];

/** The day's row, made where it is missing, held until the transaction ends. */
export async function lockUsage(trx: Trx, orgId: string, day: string): Promise<Usage & { emails: number }> {
  const id = { org_id: orgId, day };
  const find = () => trx('daily_usage').where(id).forUpdate().first();
  const row =
    (await find()) ?? (await trx('daily_usage').insert(id).onConflict(['org_id', 'day']).ignore().then(find));
  return {
    requests: row.requests,
    emails: row.emails,
    secondSince: row.second_since,
    secondRequests: row.second_requests,
  };
}

async function saveUsage(trx: Trx, orgId: string, day: string, usage: Usage): Promise<void> {
  await trx('daily_usage').where({ org_id: orgId, day }).update({
    requests: usage.requests,
    second_since: usage.secondSince,
    second_requests: usage.secondRequests,
  });
}

/** Recipients accepted, and requests to be taken back because they were refused with 429 after they had counted. */
export async function addUsage(
  trx: Trx,
  orgId: string,
  day: string,
  { emails, refused }: { emails: number; refused: number },
): Promise<void> {
  await trx('daily_usage')
    .where({ org_id: orgId, day })
    .update({
      emails: trx.raw('emails + ?', [emails]),
      requests: trx.raw('case when requests > ? then requests - ? else 0 end', [refused, refused]),
      second_requests: trx.raw('case when second_requests > ? then second_requests - ? else 0 end', [
        refused,
        refused,
      ]),
    });
}
