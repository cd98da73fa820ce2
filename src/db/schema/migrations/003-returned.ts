/** What comes in by mail: returned mail that is kept, and the reports on domains. */
import type { Knex } from 'knex';

export const returned: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('inbound_mails', (table) => {
      table.uuid('id').notNullable().primary();
      // Null for what is of no delivery: letters to postmaster, complaints without a token of ours.
      table.uuid('delivery_id').references('deliveries.id').onDelete('cascade');
      // As in bounces/parse/parse-result.ts.
      table.text('kind').notNullable();
      table.text('sender').notNullable();
      table.text('recipient').notNullable();
      table.text('peer').notNullable();
      table.bigInteger('at').notNullable();
      table.text('reading').notNullable();
      // Of the whole mail; `raw` is its beginning.
      table.integer('size').notNullable();
      table.binary('raw').notNullable();
      table.index(['delivery_id']);
      // The letters: the oldest are forgotten.
      table.index(['id'], 'inbound_mails_letters_index', { predicate: knex.whereNull('delivery_id') });
    });
    await knex.schema.createTable('domain_reports', (table) => {
      table.uuid('id').notNullable().primary();
      // dmarc or tls.
      table.text('kind').notNullable();
      table.text('domain').notNullable();
      table.text('reporter').notNullable();
      table.text('report_id').notNullable();
      table.bigInteger('begins_at').notNullable();
      table.bigInteger('ends_at').notNullable();
      table.bigInteger('received_at').notNullable();
      table.text('report').notNullable();
      // A reporter that sends one twice sends it once.
      table.unique(['kind', 'domain', 'reporter', 'report_id']);
      table.index(['domain', 'id']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
