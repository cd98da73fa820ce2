/**
 * On PostgreSQL the tables that every mail adds to are cut into partitions by time, so that what is old goes by dropping
 * a partition: attempts and emails by their ids, which tell when they were made (UUID version 7), events by their
 * positions, in whose order they are read. What cuts and drops is db/schema/partitions-ahead.ts and db/schema/partitions-past.ts.
 *
 * It takes a moment, however much there is: the table of before becomes the first partition, which takes everything. That
 * is proven by the columns alone, so no row is looked at; nor is an index made.
 *
 * What the database no longer checks, for each row at a cost, is that what mails are made of refers to what is there. To
 * drop a partition it would have to search all that may refer to its rows, and to lock those tables too. Whoever writes
 * such rows does it in the transaction that made the row they refer to, or has locked the delivery that they are about.
 *
 * SQLite has no partitions.
 */
import type { Knex } from 'knex';

interface Partitioned {
  key: string;
  /** Their names, and what follows it where they are made. Unique ones have the key, as PostgreSQL asks for. */
  indexes: Record<string, string>;
}

const tables: Record<string, Partitioned> = {
  attempts: {
    key: 'id',
    indexes: { attempts_delivery_id_number_index: '(delivery_id, number)' },
  },
  emails: {
    key: 'id',
    indexes: { emails_org_id_id_index: '(org_id, id)' },
  },
  events: {
    key: 'position',
    // Each partition has a unique index of ids besides: all of them cannot share one, for it has no position.
    indexes: {
      events_position_unique: '(position)',
      events_email_id_position_index: '(email_id, position)',
      events_org_id_position_index: '(org_id, position)',
    },
  },
};

const unchecked = [
  'alter table attempts drop constraint attempts_delivery_id_foreign',
  'alter table emails drop constraint emails_org_id_foreign',
  'alter table events drop constraint events_org_id_foreign, drop constraint events_email_id_foreign',
  'alter table messages drop constraint messages_email_id_foreign',
  'alter table deliveries drop constraint deliveries_email_id_foreign, drop constraint deliveries_message_id_foreign',
];

function partitioned(name: string, { key, indexes }: Partitioned): string[] {
  const first = `${name}_first`;
  return [
    `alter table ${name} rename to ${first}`,
    ...[`${name}_pkey`, ...Object.keys(indexes)].map(
      (index) => `alter index ${index} rename to ${index.replace(name, first)}`,
    ),
    `create table ${name} (like ${first} including defaults) partition by range (${key})`,
    ...(key === 'id' ? [`alter table ${name} add primary key (id)`] : []),
    ...Object.entries(indexes).map(
      ([index, columns]) =>
        `create ${index.endsWith('_unique') ? 'unique index' : 'index'} ${index} on ${name} ${columns}`,
    ),
    `alter table ${name} attach partition ${first} for values from (minvalue) to (maxvalue)`,
  ];
}

/** What belonged to the table of events. Only the statement's own table has its triggers fired. */
const ofEvents = [
  'drop trigger events_announce on events_first',
  'alter sequence events_position_seq owned by events.position',
  `create trigger events_announce before insert on events
     for each statement execute function events_announce()`,
];

export const partitions: Knex.Migration = {
  async up(knex) {
    if (knex.client.config.client !== 'pg') return;
    const statements = Object.entries(tables).flatMap(([name, table]) => partitioned(name, table));
    for (const statement of [...unchecked, ...statements, ...ofEvents]) await knex.raw(statement);
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
