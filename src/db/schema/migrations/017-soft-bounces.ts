/**
 * Addresses that bounced softly, and the mail sent to them since (db/accounts/soft-bounces.ts). Other addresses have no rows,
 * so deliveries that succeed write nothing here. No references: emails are deleted by partition.
 */
import type { Knex } from 'knex';

export const softBounces: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('soft_bounces', (table) => {
      table.uuid('id').primary();
      table.uuid('org_id').notNullable().references('organizations.id').onDelete('cascade');
      table.text('address_key').notNullable();
      table.uuid('email_id').notNullable();
      table.bigInteger('created_at').notNullable();
      // Null: a mail that was accepted for the address after it had bounced.
      table.bigInteger('bounced_at');
      table.index(['org_id', 'address_key']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
