/** The format of a webhook's posts, and the public key of a format whose secret only signs. */
import type { Knex } from 'knex';

export const webhookFormats: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('webhooks', (table) => {
      table.text('format').notNullable().defaultTo('standard');
      table.text('public_key');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
