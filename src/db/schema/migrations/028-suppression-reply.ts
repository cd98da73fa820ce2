/** What the host said when the address bounced; null: it did not bounce, or it did before this column. */
import type { Knex } from 'knex';

export const suppressionReply: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('suppressions', (table) => {
      table.text('reply');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
