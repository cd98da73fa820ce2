/** Organizations may be pinned to a pool of source addresses, and nodes say which pools they have. */
import type { Knex } from 'knex';

export const sourcePools: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('organizations', (table) => {
      // Null: the pool "default".
      table.text('pool');
      // Read whole, once a second: of all organizations those that are pinned.
      table.index(['pool', 'id'], undefined, { predicate: knex.whereNotNull('pool') });
    });
    await knex.schema.createTable('source_pools', (table) => {
      // The node's name in leases; the pools that it sends from, and when it last said so.
      table.text('node').notNullable();
      table.text('pool').notNullable();
      table.bigInteger('at').notNullable();
      table.primary(['node', 'pool']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
