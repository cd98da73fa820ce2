/**
 * The names of organizations are unique. Of organizations that had the same name the oldest keeps it; the others get a
 * number behind theirs. The upgrade notice (db/schema/migrate.ts) says which, before it happens.
 */
import type { Knex } from 'knex';

export interface Rename {
  id: string;
  from: string;
  to: string;
}

/** What the migration is about to rename; changes nothing. */
export async function plannedRenames(db: Knex): Promise<Rename[]> {
  const rows: { id: string; name: string }[] = await db('organizations').orderBy('id').select('id', 'name');
  const all = new Set(rows.map(({ name }) => name));
  const kept = new Set<string>();
  const renames: Rename[] = [];
  for (const { id, name } of rows) {
    if (!kept.has(name)) {
      kept.add(name);
      continue;
    }
    let number = 2;
    while (all.has(`${name} (${number})`)) number += 1;
    const to = `${name} (${number})`;
    all.add(to);
    renames.push({ id, from: name, to });
  }
  return renames;
}

export const names: Knex.Migration = {
  async up(knex) {
    for (const { id, to } of await plannedRenames(knex)) {
      await knex('organizations').where({ id }).update({ name: to });
    }
    await knex.schema.alterTable('organizations', (table) => {
      table.unique(['name']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
