/**
 * How the TLS sessions of a day (UTC, counted from 1970) with the hosts of a recipient domain went, until they are reported
 * (db/queue/tls-results.ts). Written only if POSTERN_TLS_REPORTS is set.
 */
import type { Knex } from 'knex';

export const tlsResults: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('tls_results', (table) => {
      table.integer('day').notNullable();
      table.text('domain').notNullable();
      table.text('policy').notNullable();
      // Empty for sessions without a failure.
      table.text('host').notNullable();
      table.text('failure').notNullable();
      table.bigInteger('sessions').notNullable();
      // A JSON array: the lines of the policy.
      table.text('policy_text').notNullable();
      // Of one of the sessions.
      table.text('address');
      table.text('source');
      table.text('reason');
      // When the report is sent, or tried again.
      table.bigInteger('due_at').notNullable();
      table.primary(['day', 'domain', 'policy', 'host', 'failure']);
      table.index('due_at');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
