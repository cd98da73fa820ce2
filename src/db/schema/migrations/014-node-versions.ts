/** Which version each node runs, and whether it sends: one that only serves is no part of any destination's limits. */
import type { Knex } from 'knex';

export const nodeVersions: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('nodes', (table) => {
      table.text('version');
      table.boolean('sends').notNullable().defaultTo(true);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
