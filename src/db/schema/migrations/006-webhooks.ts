/** Webhooks: endpoints, what is to be told to each (the outbox), every try, and how far events have been read. */
import type { Knex } from 'knex';

export const webhooks: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('webhooks', (table) => {
      table.uuid('id').notNullable().primary();
      table.uuid('org_id').notNullable().references('organizations.id').onDelete('cascade');
      table.text('url').notNullable();
      // The event types that it wants, as JSON; an empty list: all.
      table.text('types').notNullable();
      table.text('status').notNullable();
      // Why it is disabled.
      table.text('reason');
      // Sealed. The old one signs beside the new one until its time is up.
      table.text('secret').notNullable();
      table.text('old_secret');
      table.bigInteger('old_secret_until');
      // It is told what has a position beyond this one.
      table.bigInteger('after_position').notNullable();
      // Since when nothing has got through; null while it takes what comes.
      table.bigInteger('failing_since');
      // It asked to be left alone until then.
      table.bigInteger('paused_until');
      table.bigInteger('created_at').notNullable();
      table.bigInteger('updated_at').notNullable();
      table.index(['org_id']);
      table.index(['id'], 'webhooks_active_index', { predicate: knex.whereRaw("status = 'active'") });
    });
    await knex.schema.createTable('webhook_messages', (table) => {
      table.uuid('id').notNullable().primary();
      table.uuid('webhook_id').notNullable().references('webhooks.id').onDelete('cascade');
      // No reference: an event is forgotten at its time, whoever was or was not told.
      table.uuid('event_id').notNullable();
      table.text('type').notNullable();
      // The event's, by which the messages of a lane are in order.
      table.bigInteger('position').notNullable();
      // Those of one email; one that belongs to none has a lane of its own. Null once it is final.
      table.uuid('lane');
      table.text('status').notNullable();
      table.integer('attempts').notNullable().defaultTo(0);
      // When it is looked at next: its next try or, while it is leased, the lease's end. Null: never, or not yet.
      table.bigInteger('due_at');
      table.text('lease_owner');
      table.bigInteger('created_at').notNullable();
      table.bigInteger('updated_at').notNullable();
      table.unique(['webhook_id', 'event_id']);
      table.index(['created_at']);
      table.index(['webhook_id', 'due_at', 'position'], undefined, {
        predicate: knex.whereNotNull('due_at'),
      });
      table.index(['webhook_id', 'lane', 'position'], undefined, { predicate: knex.whereNotNull('lane') });
      table.index(['lease_owner'], undefined, { predicate: knex.whereNotNull('lease_owner') });
      table.index(['webhook_id', 'event_id'], 'webhook_messages_failed_index', {
        predicate: knex.whereRaw("status = 'failed'"),
      });
    });
    await knex.schema.createTable('webhook_attempts', (table) => {
      table.uuid('id').notNullable().primary();
      table.uuid('message_id').notNullable().references('webhook_messages.id').onDelete('cascade');
      table.uuid('webhook_id').notNullable().references('webhooks.id').onDelete('cascade');
      table.integer('number').notNullable();
      table.bigInteger('started_at').notNullable();
      table.integer('duration').notNullable();
      // The request: what else was sent is made of the event and of this time, and neither changes.
      table.text('url').notNullable();
      // Of the answer: its status and the beginning of its body; null where there was none.
      table.integer('status');
      table.text('answer');
      // In a sentence, where it failed.
      table.text('error');
      table.index(['message_id']);
      table.index(['webhook_id', 'id']);
    });
    await knex.schema.createTable('event_readers', (table) => {
      // How far a reader of all events has come.
      table.text('name').notNullable().primary();
      table.bigInteger('position').notNullable();
    });
    await knex('event_readers').insert({ name: 'webhooks', position: 0 });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
