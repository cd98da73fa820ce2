/** The people of the dashboard: users, what they may do where, their sessions and one-time links; when a key was last used. */
import type { Knex } from 'knex';

export const users: Knex.Migration = {
  async up(knex) {
    await knex.schema.createTable('users', (table) => {
      table.uuid('id').notNullable().primary();
      // As shown; the key is as addresses are compared.
      table.text('email').notNullable();
      table.text('email_key').notNullable().unique();
      table.text('name').notNullable();
      // scrypt with its parameters; null until the person sets one.
      table.text('password');
      // Sealed.
      table.text('totp_secret');
      // The time step of the code that was used last: none is taken twice.
      table.bigInteger('totp_step');
      table.boolean('operator').notNullable().defaultTo(false);
      table.bigInteger('created_at').notNullable();
      table.bigInteger('signed_in_at');
      table.bigInteger('disabled_at');
    });
    await knex.schema.createTable('memberships', (table) => {
      table.uuid('user_id').notNullable().references('users.id').onDelete('cascade');
      table.uuid('org_id').notNullable().references('organizations.id').onDelete('cascade');
      table.text('role').notNullable();
      table.bigInteger('created_at').notNullable();
      table.primary(['user_id', 'org_id']);
      table.index(['org_id']);
    });
    await knex.schema.createTable('sessions', (table) => {
      table.uuid('id').notNullable().primary();
      // The token's SHA-256.
      table.text('hash').notNullable().unique();
      table.uuid('user_id').notNullable().references('users.id').onDelete('cascade');
      table.text('address').notNullable();
      table.text('agent').notNullable();
      table.bigInteger('created_at').notNullable();
      table.bigInteger('seen_at').notNullable();
      table.bigInteger('expires_at').notNullable();
      table.index(['user_id']);
      table.index(['expires_at']);
    });
    await knex.schema.createTable('one_time_tokens', (table) => {
      // The token's SHA-256.
      table.text('hash').notNullable().primary();
      table.text('purpose').notNullable();
      // Null: whoever comes first (set-up).
      table.uuid('user_id').references('users.id').onDelete('cascade');
      table.bigInteger('created_at').notNullable();
      table.bigInteger('expires_at').notNullable();
      table.index(['user_id']);
      table.index(['expires_at']);
    });
    await knex.schema.createTable('recovery_codes', (table) => {
      table.uuid('user_id').notNullable().references('users.id').onDelete('cascade');
      // The code's SHA-256.
      table.text('hash').notNullable();
      table.primary(['user_id', 'hash']);
    });
    await knex.schema.alterTable('api_keys', (table) => {
      table.bigInteger('used_at');
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
