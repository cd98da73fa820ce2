/**
 * The first schema. Times are milliseconds since the epoch (bigint); ids are UUID v7; JSON is kept as text, since
 * no statement looks inside it; booleans and binaries are each database's own.
 */
import type { Knex } from 'knex';

type Build = (table: Knex.CreateTableBuilder, knex: Knex) => void;

const accounts: Record<string, Build> = {
  organizations(table) {
    table.uuid('id').notNullable().primary();
    table.text('name').notNullable();
    table.bigInteger('created_at').notNullable();
    // A null limit is no limit.
    table.bigInteger('quota_limit');
    table.bigInteger('quota_used').notNullable().defaultTo(0);
    table.bigInteger('quota_since').notNullable();
    table.bigInteger('wallet').notNullable().defaultTo(0);
    // The sum of the organization's ledger, kept beside it: what the books must add up to.
    table.bigInteger('ledger_total').notNullable().defaultTo(0);
    table.integer('requests_per_second');
    table.integer('requests_per_day');
    table.integer('emails_per_day');
    // Said once each, until there are credits again.
    table.boolean('told_low').notNullable().defaultTo(false);
    table.boolean('told_exhausted').notNullable().defaultTo(false);
  },
  api_keys(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    table.text('label').notNullable();
    table.text('hash').notNullable().unique();
    table.text('hint').notNullable();
    table.text('scopes').notNullable();
    table.bigInteger('created_at').notNullable();
    table.bigInteger('revoked_at');
    table.index(['org_id']);
  },
  domains(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    table.text('name').notNullable();
    table.text('status').notNullable();
    table.text('dkim_selector').notNullable();
    table.text('dkim_public_key').notNullable();
    table.text('dkim_private_key').notNullable();
    table.boolean('open_tracking').notNullable().defaultTo(false);
    table.boolean('click_tracking').notNullable().defaultTo(false);
    table.text('tracking_host');
    table.bigInteger('created_at').notNullable();
    table.bigInteger('verified_at');
    table.bigInteger('checked_at');
    table.unique(['org_id', 'name']);
  },
  credit_entries(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    table.bigInteger('at').notNullable();
    table.bigInteger('change').notNullable();
    table.text('reason').notNullable();
    table.uuid('email_id');
    // Null while the quota is unlimited: there is no balance then.
    table.bigInteger('balance');
    table.index(['org_id', 'id']);
  },
  suppressions(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    table.text('address').notNullable();
    table.text('address_key').notNullable();
    table.text('reason').notNullable();
    table.bigInteger('created_at').notNullable();
    table.unique(['org_id', 'address_key']);
  },
  idempotency(table) {
    organization(table);
    // 'key': an idempotency key of the caller's. 'window': the duplicate window's hash.
    table.text('kind').notNullable();
    table.text('key').notNullable();
    table.text('request_hash').notNullable();
    table.text('response').notNullable();
    table.uuid('email_id').notNullable();
    table.bigInteger('created_at').notNullable();
    table.primary(['org_id', 'kind', 'key']);
    table.index(['created_at']);
  },
  daily_usage(table) {
    organization(table);
    table.text('day').notNullable();
    table.integer('requests').notNullable().defaultTo(0);
    table.integer('emails').notNullable().defaultTo(0);
    // The window of the limit per second that is open.
    table.bigInteger('second_since').notNullable().defaultTo(0);
    table.integer('second_requests').notNullable().defaultTo(0);
    table.primary(['org_id', 'day']);
  },
};

const mail: Record<string, Build> = {
  emails(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    table.uuid('key_id');
    table.text('message_id').notNullable();
    table.text('sender').notNullable();
    table.text('reply_to');
    table.text('subject').notNullable();
    table.text('recipients').notNullable();
    table.text('tags').notNullable();
    table.text('tracking').notNullable();
    table.integer('credits').notNullable();
    table.bigInteger('created_at').notNullable();
    table.bigInteger('updated_at').notNullable();
    table.index(['org_id', 'id']);
  },
  messages(table) {
    table.uuid('id').notNullable().primary();
    email(table);
    table.integer('size').notNullable();
    table.binary('raw').notNullable();
    table.index(['email_id']);
  },
  deliveries(table, knex) {
    table.uuid('id').notNullable().primary();
    email(table);
    organization(table);
    // Null for a recipient that was never queued (suppressed, insufficient_credit).
    table.uuid('message_id').references('messages.id');
    table.integer('position').notNullable();
    table.text('recipient').notNullable();
    table.text('domain').notNullable();
    table.text('status').notNullable();
    table.integer('attempts').notNullable().defaultTo(0);
    // When the queue looks at it next: the next attempt's time or, while sending, the lease's end. Null: never.
    table.bigInteger('due_at');
    table.text('lease_owner');
    table.bigInteger('created_at').notNullable();
    table.bigInteger('expires_at').notNullable();
    table.bigInteger('updated_at').notNullable();
    table.bigInteger('delivered_at');
    table.text('last_reply');
    table.text('mx');
    table.text('tls');
    table.text('bounce');
    for (const kind of ['open', 'click']) {
      // People's; scanners' are counted apart, and have no times.
      table.integer(`${kind}_count`).notNullable().defaultTo(0);
      table.bigInteger(`${kind}_first_at`);
      table.bigInteger(`${kind}_last_at`);
      table.integer(`${kind}_scans`).notNullable().defaultTo(0);
    }
    table.index(['email_id', 'position']);
    // The few rows that are alive, however many there have been.
    table.index(['due_at'], undefined, { predicate: knex.whereNotNull('due_at') });
    table.index(['lease_owner'], undefined, { predicate: knex.whereNotNull('lease_owner') });
  },
  attempts(table) {
    table.uuid('id').notNullable().primary();
    table.uuid('delivery_id').notNullable().references('deliveries.id').onDelete('cascade');
    table.integer('number').notNullable();
    table.bigInteger('started_at').notNullable();
    table.bigInteger('ended_at').notNullable();
    table.text('verdict').notNullable();
    table.text('reply');
    table.text('mx');
    table.text('tls');
    table.text('transcript').notNullable();
    table.index(['delivery_id', 'number']);
  },
  events(table) {
    table.uuid('id').notNullable().primary();
    organization(table);
    // Null for what happens to the organization.
    table.uuid('email_id').references('emails.id').onDelete('cascade');
    table.text('type').notNullable();
    table.text('recipient');
    table.bigInteger('at').notNullable();
    table.text('data').notNullable();
    table.index(['email_id', 'id']);
  },
};

function organization(table: Knex.CreateTableBuilder): void {
  table.uuid('org_id').notNullable().references('organizations.id').onDelete('cascade');
}

function email(table: Knex.CreateTableBuilder): void {
  table.uuid('email_id').notNullable().references('emails.id').onDelete('cascade');
}

export const first: Knex.Migration = {
  async up(knex) {
    for (const [name, build] of Object.entries({ ...accounts, ...mail })) {
      await knex.schema.createTable(name, (table) => build(table, knex));
    }
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
