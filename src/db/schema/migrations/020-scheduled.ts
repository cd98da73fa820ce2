/** Mail that is sent later (`scheduledAt`), mail with a deadline (`expiresAfter`), and what a cancellation refunds. */
import type { Knex } from 'knex';

export const scheduled: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('emails', (table) => {
      table.bigInteger('scheduled_at');
      // How many of the email's credits were taken from the wallet; the others were taken from the quota.
      table.integer('wallet_credits').notNullable().defaultTo(0);
    });
    await knex.schema.alterTable('deliveries', (table) => {
      // No attempt starts at or after `expires_at`, and nothing extends it.
      table.boolean('has_deadline').notNullable().defaultTo(false);
      table.index(['due_at', 'id'], 'deliveries_scheduled_index', {
        predicate: knex.whereRaw("status = 'scheduled'"),
      });
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
