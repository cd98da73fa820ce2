/** The operator's rules for destinations and recipient domains (db/queue/destination-rules.ts). */
import type { Knex } from 'knex';

export const destinationRules: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('destination_rules', (table) => {
      table.text('destination').notNullable();
      // slow, hold or bounce.
      table.text('kind').notNullable();
      // Of slow: the mails per minute.
      table.integer('per_minute');
      table.text('reason').notNullable();
      table.bigInteger('created_at').notNullable();
      // Null: until it is removed.
      table.bigInteger('until');
      table.primary(['destination', 'kind']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
