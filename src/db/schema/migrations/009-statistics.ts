/** Figures of each organization and hour, summed up from the events (db/events/statistics.ts). */
import type { Knex } from 'knex';

/** Of the bounds of times to delivery (record/latency.ts), and one for what took longer. */
const latencies = 14;

export const statistics: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('statistics', (table) => {
      table.uuid('org_id').notNullable().references('organizations.id').onDelete('cascade');
      // When it began.
      table.bigInteger('hour').notNullable();
      for (const name of ['sent', 'delivered', 'deferred', 'bounced', 'expired', 'complained'])
        table.integer(name).notNullable();
      // Deliveries that people opened, or followed a link of, for the first time.
      for (const name of ['opened', 'clicked']) table.integer(name).notNullable();
      // How many of the delivered took how long.
      for (let index = 0; index < latencies; index++) table.integer(`took_${index}`).notNullable();
      table.primary(['org_id', 'hour']);
      table.index(['hour']);
    });
    await knex('event_readers').insert({ name: 'statistics', position: 0 });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
