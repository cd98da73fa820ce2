/** API keys can refuse sends with unknown members. */
import type { Knex } from 'knex';

export const strictKeys: Knex.Migration = {
  async up(knex) {
    await knex.schema.alterTable('api_keys', (table) => {
      table.boolean('strict').notNullable().defaultTo(false);
    });
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
