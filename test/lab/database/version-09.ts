/** Makes a database of this program one as 0.9.0 leaves it, by undoing the steps since then. */
import type { Db } from '../../../src/db/engine/open.ts';
import { baseline, steps } from '../../../src/db/schema/steps.ts';

export async function toVersion09(db: Db): Promise<void> {
  for (const [name, statement] of Object.entries(steps).reverse()) {
    const [, index] = /^create index (\w+) /.exec(statement) ?? [];
    if (index !== undefined) {
      await db.raw(`drop index ${index}`);
      continue;
    }
    const [, table, column] = /^alter table (\w+) add column (\w+) /.exec(statement) ?? [];
    if (table === undefined) throw new Error(`say here how ${name} is undone`);
    await db.raw(`alter table ${table} drop column ${column}`);
  }
  await db('knex_migrations').where('name', '>', baseline).delete();
}
