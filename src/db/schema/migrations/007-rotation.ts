/**
 * DKIM keys beside the one that signs all mail of a domain, which stays in the domain's own row: the next one, one of
 * another algorithm that signs as well, those that have signed. And the end of API keys that have been replaced.
 */
import type { Knex } from 'knex';

export const rotation: Knex.Migration = {
  async up(knex) {
    // A rotated key is good until then.
    await knex.schema.alterTable('api_keys', (table) => table.bigInteger('ends_at'));
    await knex.schema.createTable('dkim_keys', (table) => {
      table.uuid('id').notNullable().primary();
      table.uuid('domain_id').notNullable().references('domains.id').onDelete('cascade');
      table.text('algorithm').notNullable();
      table.text('selector').notNullable();
      table.text('public_key').notNullable();
      // Sealed; null once it is retired.
      table.text('private_key');
      // pending, signing, retired
      table.text('status').notNullable();
      table.bigInteger('created_at').notNullable();
      table.bigInteger('checked_at');
      // Of one that is retired: until then mail that it has signed may wait in the queue.
      table.bigInteger('keep_until');
      table.unique(['domain_id', 'selector']);
      // One that waits, and one that signs, of each algorithm.
      table.unique(['domain_id', 'algorithm', 'status'], {
        indexName: 'dkim_keys_live_unique',
        predicate: knex.whereRaw("status <> 'retired'"),
      });
      table.index(['id'], 'dkim_keys_watched_index', { predicate: knex.whereRaw("status <> 'signing'") });
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
