/** When the server next looks up the DKIM record of a domain, and how often in a row a verified domain's was missing. */
import type { Knex } from 'knex';

export const domainWatch: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('domains', (table) => {
      // Null: the domain is not looked up any more by itself.
      table.bigInteger('check_at');
      table.integer('failures').notNullable().defaultTo(0);
      // The first of these failures.
      table.bigInteger('failing_since');
      table.index(['check_at', 'id'], undefined, { predicate: knex.whereNotNull('check_at') });
    });
    // Due at once; a round takes only some of them.
    await knex('domains').update({ check_at: 0 });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
