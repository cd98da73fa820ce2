/** A database with the schema, and connections to it, which end with the test. */
import type { ExecutionContext } from 'ava';
import { openDatabase } from '#platform/database/engine/open.ts';
import { temporaryDirectory } from '../evidence.ts';
import { createMigrated, type DatabaseKind } from './databases.ts';

export async function openMigrated(t: ExecutionContext, kind: DatabaseKind) {
  const dataDir = await temporaryDirectory(t);
  const { url, drop } = await createMigrated(kind, dataDir);
  t.teardown(drop);
  /** Another pool of connections. */
  const open = async () => {
    const db = await openDatabase({ dataDir, databaseUrl: url });
    t.teardown(() => db.destroy());
    return db;
  };
  return { db: await open(), open, dataDir, url };
}
