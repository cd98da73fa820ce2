/** Test keys (mail/test-route.ts): the key says that its mail is test mail, and the email keeps it. */
import type { Knex } from 'knex';

export const testKeys: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('api_keys', (table) => {
      table.boolean('is_test').notNullable().defaultTo(false);
    });
    await knex.schema.alterTable('emails', (table) => {
      table.boolean('is_test').notNullable().defaultTo(false);
      // The inbox of an organization, and whether an event is about test mail.
      table.index(['org_id', 'id'], 'emails_test_index', { predicate: knex.whereRaw('is_test') });
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
