/**
 * Records the windows of an organization's limit per second: a trigger in the database stores each of them with the highest
 * number of requests that it ever had, whichever node wrote it.
 */
import type { Db } from '#platform/database/engine/open.ts';

export interface Windows {
  count: number;
  /** Windows that reached the limit. */
  full: number;
  /** Requests in the fullest window. */
  max: number;
  /** Shortest time between the beginnings of two windows, in milliseconds. */
  closestMs: number;
  /** Requests in all windows, and in the count of the day. */
  sumOfWindows: number;
  dayCount: number;
}

export async function recordWindows(db: Db, orgId: string): Promise<void> {
  await db.raw(`
    create table seen_windows (since bigint primary key, requests integer not null);
    create function note_window() returns trigger language plpgsql as $$
      begin
        if new.org_id = '${orgId}' and new.second_since > 0 then
          insert into seen_windows values (new.second_since, new.second_requests) on conflict (since)
            do update set requests = greatest(seen_windows.requests, excluded.requests);
        end if;
        return null;
      end $$;
    create trigger note_window after update on daily_usage for each row execute function note_window();
  `);
}

export async function windowsOf(db: Db, orgId: string): Promise<Windows> {
  const rows: { since: number; requests: number }[] = await db('seen_windows').orderBy('since');
  const { requests: dayCount } = await db('daily_usage').where({ org_id: orgId }).first('requests');
  const max = Math.max(0, ...rows.map(({ requests }) => requests));
  const gaps = rows.slice(1).map(({ since }, index) => since - rows[index]!.since);
  return {
    count: rows.length,
    full: rows.filter(({ requests }) => requests === max).length,
    max,
    closestMs: Math.min(Number.POSITIVE_INFINITY, ...gaps),
    sumOfWindows: rows.reduce((sum, { requests }) => sum + requests, 0),
    dayCount,
  };
}

export function faultsOfWindows(windows: Windows, limit: number): string[] {
  const faults: string[] = [];
  if (windows.max !== limit)
    faults.push(`${windows.max} requests were taken in a second, the limit is ${limit}`);
  if (windows.closestMs < 1000) faults.push(`a second began ${windows.closestMs} ms after the one before it`);
  if (windows.sumOfWindows !== windows.dayCount)
    faults.push(
      `${windows.sumOfWindows} requests were taken second by second, ${windows.dayCount} are in the day's books`,
    );
  return faults;
}
