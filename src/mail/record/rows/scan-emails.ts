/** Scans old emails page by page, the oldest first, and starts again some minutes after the end. */
import { firstId, lastIdOf } from '#platform/database/tables/time-of-id.ts';

/** Pause between two scans, because each scan reads the emails that have to stay again. */
const pauseMs = 5 * 60_000;

interface EmailScan {
  now(): number;
  /** Emails from before this time are scanned. */
  latest(): number;
  pageSize: number;
  /** Returns the next `pageSize` ids after `after`, up to `last`. */
  readPage(after: string, last: string): Promise<string[]>;
  handle(ids: string[]): Promise<void>;
}

/** Each call handles a page; it returns how many emails the page had, or 0 at the end of a scan. */
export function scanEmails({ now, latest, pageSize, readPage, handle }: EmailScan): () => Promise<number> {
  let after = firstId;
  let pausedUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (now() < pausedUntil) return 0;
    const ids = await readPage(after, lastIdOf(latest()));
    if (ids.length > 0) await handle(ids);
    const isMore = ids.length === pageSize;
    after = isMore ? ids.at(-1)! : firstId;
    if (!isMore) pausedUntil = now() + pauseMs;
    return isMore ? ids.length : 0;
  };
}
