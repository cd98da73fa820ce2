/** Makes a database of this program one as 0.9.0 leaves it, by undoing the steps since then. */
import type { Db } from '#platform/database/engine/open.ts';
import { statementOf } from '#platform/database/schema/migrate.ts';
import { baseline, steps } from '#platform/database/schema/steps.ts';

const undone: [step: RegExp, undo: string][] = [
  [/^alter table (\w+) add column (\w+) .*$/, 'alter table $1 drop column $2'],
  [/^create (?:unique )?index (\w+) .*$/, 'drop index $1'],
  [/^create table (\w+) .*$/s, 'drop table $1'],
  [/^insert into (\w+) .*$/s, 'delete from $1'],
  [
    /^drop index suppressions_org_id_address_key_unique$/,
    'create unique index suppressions_org_id_address_key_unique on suppressions (org_id, address_key)',
  ],
  [
    /^alter table suppressions drop constraint (\w+)$/,
    'alter table suppressions add constraint $1 unique (org_id, address_key)',
  ],
  [/^update (\w+) set (\w+) = ('[^']*') where \2 = ('[^']*')$/, 'update $1 set $2 = $4 where $2 = $3'],
];

export async function toVersion09(db: Db): Promise<void> {
  for (const name of Object.keys(steps).reverse()) {
    const statement = statementOf(db, name);
    const [pattern, undo] = undone.find(([step]) => step.test(statement)) ?? [];
    if (pattern === undefined) throw new Error(`say here how ${name} is undone`);
    await db.raw(statement.replace(pattern, undo!));
  }
  await db('knex_migrations').where('name', '>', baseline).delete();
}
