/**
 * The queue at the same cost whatever its length. What waits is no longer parked by a write of its own: a lane is a
 * domain's mail of one organization in the order in which it falls due, and has an index. What is leased is in none
 * of the indexes of what waits, so that mail that is sent at once passes through one of them.
 *
 * Takes one pass over `deliveries` for each of three indexes, and one over `idempotency`: some seconds a million mails.
 * `parked_at` stays, empty: to drop it would write all of `deliveries` anew on SQLite.
 */
import type { Knex } from 'knex';
import { isPostgres } from '../../engine/open.ts';

const waits = "status in ('queued', 'deferred')";

export const flat: Knex.Migration = {
  async up(knex) {
    if (isPostgres(knex)) {
      // Each mail leaves a dead row behind, and claims go past those at the head of a lane: of ten million rows a
      // fifth, which is the usual, is too many to wait for.
      await knex.raw('alter table deliveries set (autovacuum_vacuum_scale_factor = 0.01)');
      await knex.raw('alter table idempotency set (autovacuum_vacuum_scale_factor = 0.01)');
    }
    await knex.raw(
      'update deliveries set due_at = parked_at, parked_at = null where parked_at is not null and lease_owner is null',
    );
    await knex.schema.alterTable('deliveries', (table) => {
      table.dropIndex(['due_at']);
      table.dropIndex(['domain', 'org_id', 'parked_at']);
    });
    await knex.schema.alterTable('deliveries', (table) => {
      const predicate = knex.whereRaw(waits);
      table.index(['due_at'], undefined, { predicate });
      // The lanes.
      table.index(['domain', 'org_id', 'due_at'], undefined, { predicate });
      // What has reached its maximum age, wherever it waits; and the order in which an operator goes through the queue.
      table.index(['expires_at'], undefined, { predicate });
    });
    await knex.schema.alterTable('idempotency', (table) => {
      table.dropIndex(['created_at']);
      // The two kinds are forgotten at different ages.
      table.index(['kind', 'created_at']);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
