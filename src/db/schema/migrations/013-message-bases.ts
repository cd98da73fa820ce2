/** What the copies of a message for several recipients have in common is kept once. */
import type { Knex } from 'knex';

export const messageBases: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('message_bases', (table) => {
      // Nothing checks that the email is there (see 010-partitions); whoever removes an email removes this too.
      table.uuid('email_id').notNullable().primary();
      table.binary('raw').notNullable();
    });
    await knex.schema.alterTable('messages', (table) => {
      // Whether `raw` is a patch of the email's base; `size` is that of the message all the same.
      table.boolean('is_patch').notNullable().defaultTo(false);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
