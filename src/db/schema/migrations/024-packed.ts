/**
 * What a mail leaves behind takes less space.
 *
 * The packed form of attempts and their results (db/engine/packed-json.ts) has a column. Rows from before keep theirs in the
 * columns that they have, and null here: nothing is copied, and they go when their time has come.
 *
 * The ledger has one index instead of two; on SQLite the table is that index. It is the only table that is copied: some
 * seconds a million entries.
 */
import type { Knex } from 'knex';
import { isPostgres } from '../../engine/open.ts';

const columns = [
  'id char(36) not null',
  'org_id char(36) not null',
  'at bigint not null',
  'change bigint not null',
  'reason text not null',
  'email_id char(36)',
  'balance bigint',
  'foreign key(org_id) references organizations(id) on delete cascade',
  'primary key (org_id, id)',
].join(', ');

const names = 'id, org_id, at, change, reason, email_id, balance';

const ledger = {
  postgres: [
    'alter table credit_entries drop constraint credit_entries_pkey',
    'drop index credit_entries_org_id_id_index',
    'alter table credit_entries add primary key (org_id, id)',
  ],
  sqlite: [
    `create table ledger (${columns}) without rowid`,
    `insert into ledger (${names}) select ${names} from credit_entries order by org_id, id`,
    'drop table credit_entries',
    'alter table ledger rename to credit_entries',
  ],
};

export const packed: Knex.Migration = {
  async up(knex) {
    // deliveries: reply, MX and TLS of the last attempt, once the state is final. events: the same of the event's attempt.
    // attempts: everything but the times.
    for (const name of ['deliveries', 'attempts', 'events'])
      await knex.schema.alterTable(name, (table) => {
        table.binary('packed');
      });
    for (const statement of ledger[isPostgres(knex) ? 'postgres' : 'sqlite']) await knex.raw(statement);
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
