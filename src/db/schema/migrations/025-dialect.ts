/** The other service's API through which an email was sent; null: our own, submission or the dashboard. */
import type { Knex } from 'knex';

export const dialect: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('emails', (table) => {
      table.text('dialect');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
