/** The nodes that send (db/queue/nodes.ts). */
import type { Knex } from 'knex';

export const nodes: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('nodes', (table) => {
      table.text('node').notNullable().primary();
      table.text('members').notNullable();
      table.bigInteger('at').notNullable();
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
