/** The database that a measured server uses. */
import { startPostgres } from '#lab/database/postgres.ts';
import type { Stage } from '#lab/load/stage.ts';

export interface BenchDatabase {
  name: 'PostgreSQL' | 'SQLite';
  /** Null: the file in the server's data directory. */
  url: string | null;
}

/** `settings` are PostgreSQL's. */
export async function startBenchDatabase(
  stage: Stage,
  onPostgres: boolean,
  settings: Record<string, string> = {},
): Promise<BenchDatabase> {
  if (!onPostgres) return { name: 'SQLite', url: null };
  const { url } = await stage.start(startPostgres(stage.directory, settings), (it) => it.stop());
  return { name: 'PostgreSQL', url };
}
