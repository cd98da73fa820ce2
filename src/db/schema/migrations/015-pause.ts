/** Organizations can be paused (db/accounts/pauses.ts). */
import type { Knex } from 'knex';

export const pause: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('organizations', (table) => {
      // Null: not paused.
      table.bigInteger('paused_at');
      table.text('paused_reason');
      // Each node reads all paused organizations once a second.
      table.index(['paused_at', 'id'], undefined, { predicate: knex.whereNotNull('paused_at') });
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
