/**
 * Lets a poll of SQLite skip its look while nothing can be found: nothing was committed since the last look, by this
 * process or by another one such as the command line, and time alone makes nothing due. That takes one statement, and
 * writes nothing. PostgreSQL cannot tell, so its polls always look.
 */
import { type Db, isPostgres } from './open.ts';

export interface QuietCheckParts {
  /** Null: not known. */
  changeToken(): Promise<string | null>;
  /** When time alone makes something due; infinite if nothing waits. Read once after each change. */
  nextAt(): Promise<number>;
}

/** Returns until when a poll may skip its look; minus infinity: it must look. */
export type QuietCheck = () => Promise<number>;

/** Another token than before: something was committed in between. Null on PostgreSQL. */
export async function changeToken(db: Db): Promise<string | null> {
  if (isPostgres(db)) return null;
  // The one counts commits of other connections, the other the rows that this connection has changed.
  const [row] = await db.raw(
    "select data_version || ' ' || total_changes() as token from pragma_data_version",
  );
  return row.token;
}

export function createQuietCheck(parts: QuietCheckParts): QuietCheck {
  let seen: string | null = null;
  let nextAt: number | null = null;
  return async () => {
    const token = await parts.changeToken();
    if (token === null || token !== seen) {
      seen = token;
      nextAt = null;
      return Number.NEGATIVE_INFINITY;
    }
    nextAt ??= await parts.nextAt();
    return nextAt;
  };
}
