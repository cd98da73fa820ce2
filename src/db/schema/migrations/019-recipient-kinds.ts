/** Whether a recipient is in To, in Cc, or in neither (bcc). Until now all were in To. */
import type { Knex } from 'knex';

export const recipientKinds: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('deliveries', (table) => {
      table.text('kind').notNullable().defaultTo('to');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
