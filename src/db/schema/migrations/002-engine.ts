/** What the delivery engine remembers: lanes of parked mail, suspensions, destinations, what was learned of hosts. */
import type { Knex } from 'knex';

export const engine: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('deliveries', (table) => {
      // Since when it has been due without its destination having room; then `due_at` is its maximum age. Null: not.
      table.bigInteger('parked_at');
      // The lanes: a domain's parked mail, by organization. The few rows that are parked, however many there are.
      table.index(['domain', 'org_id', 'parked_at'], undefined, {
        predicate: knex.whereNotNull('parked_at'),
      });
      // What the operator holds: it is due at no time, so no other index of what waits has it.
      table.index(['id'], 'deliveries_held_index', { predicate: knex.whereRaw("status = 'held'") });
    });
    await knex.schema.alterTable('emails', (table) => {
      table.text('tls').notNullable().defaultTo('opportunistic');
    });
    for (const name of ['organizations', 'domains']) {
      await knex.schema.alterTable(name, (table) => {
        // The least protection that mail from here is sent with.
        table.text('tls').notNullable().defaultTo('opportunistic');
      });
    }
    await knex.schema.createTable('suspensions', (table) => {
      // A recipient domain or a destination's name.
      table.text('destination').notNullable().primary();
      table.text('reason').notNullable();
      table.bigInteger('created_at').notNullable();
      table.bigInteger('until').notNullable();
    });
    await knex.schema.createTable('routes', (table) => {
      // Which destination served a recipient domain last: what the command line groups the queue by.
      table.text('domain').notNullable().primary();
      table.text('destination').notNullable();
    });
    await knex.schema.createTable('destinations', (table) => {
      // What a node makes of a destination now: connections, its limit, the circuit.
      table.text('name').notNullable();
      table.text('node').notNullable();
      table.text('state').notNullable();
      table.bigInteger('at').notNullable();
      table.primary(['name', 'node']);
    });
    await knex.schema.createTable('learned', (table) => {
      // MTA-STS policies, hosts whose TLS failed, greylisting: kept over a restart, forgotten in the end.
      table.text('kind').notNullable();
      table.text('name').notNullable();
      table.text('value').notNullable();
      table.bigInteger('expires_at').notNullable();
      table.primary(['kind', 'name']);
      table.index(['expires_at']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
