/**
 * Events in the order in which they became visible, so that a reader who remembers a position misses nothing and
 * reads nothing twice (db/events/read-events.ts has how it reads).
 *
 * SQLite has one writer, who holds the lock from before the first position is given until the commit: positions rise
 * with the commits. AUTOINCREMENT gives none twice, after the newest are deleted either; a rowid by itself would, and
 * VACUUM would renumber it.
 *
 * PostgreSQL gives positions from a sequence, and transactions commit in any order. So each that writes events first
 * takes a shared lock that names the last position given before its own; a trigger sees to it that none forgets.
 * `events_settled()` is the last position of which, and of all before it, nothing is under way any more.
 *
 * Messages lose their bytes when they are done with: their index is of those alone that have bytes.
 *
 * Writes `events` anew: some seconds a million.
 */
import type { Knex } from 'knex';

/** "ev" in ASCII, over 48 bits of position: no other advisory lock of ours is so large. */
const lockSpace = 0x6576;
const positionBits = 48;

const sqlite = [
  `create table events_anew (${[
    'position integer not null primary key autoincrement',
    'id char(36) not null',
    'org_id char(36) not null',
    'email_id char(36)',
    'type text not null',
    'recipient text',
    'at bigint not null',
    'data text not null',
    'foreign key(org_id) references organizations(id) on delete cascade',
    'foreign key(email_id) references emails(id) on delete cascade',
  ].join(', ')})`,
  `insert into events_anew (id, org_id, email_id, type, recipient, at, data)
   select id, org_id, email_id, type, recipient, at, data from events order by id`,
  'drop table events',
  'alter table events_anew rename to events',
  'create unique index events_id_unique on events (id)',
  // The position is the rowid, with which every index ends.
  'create index events_email_id_position_index on events (email_id)',
  'create index events_org_id_position_index on events (org_id)',
];

const postgres = [
  'create sequence events_position_seq',
  'alter table events add column position bigint',
  `update events set position = numbered.position
   from (select id, row_number() over (order by id) as position from events) as numbered
   where events.id = numbered.id`,
  // From here on `last_value` is a position that was given, and nobody's: none is given before a lock names it.
  `select setval('events_position_seq', (select coalesce(max(position), 0) + 1 from events))`,
  `alter table events alter column position set default nextval('events_position_seq'),
     alter column position set not null`,
  'alter sequence events_position_seq owned by events.position',
  'create unique index events_position_unique on events (position)',
  'drop index events_email_id_id_index',
  'create index events_email_id_position_index on events (email_id, position)',
  'create index events_org_id_position_index on events (org_id, position)',
  `create function events_announce() returns trigger language plpgsql as $$
   begin
     perform pg_advisory_xact_lock_shared((${lockSpace}::bigint << ${positionBits}) | last_value)
       from events_position_seq;
     return null;
   end $$`,
  `create trigger events_announce before insert on events
     for each statement execute function events_announce()`,
  `create function events_settled() returns bigint language plpgsql as $$
   declare given bigint; locked bigint;
   begin
     -- In this order: who locks later than the second look was given more than the first one saw.
     select last_value into given from events_position_seq;
     select min(((classid::bigint << 32) | objid::bigint) & ((1::bigint << ${positionBits}) - 1)) into locked
       from pg_locks
       where locktype = 'advisory' and objsubid = 1 and classid::bigint >> 16 = ${lockSpace}
         and database = (select oid from pg_database where datname = current_database());
     return least(given, locked);
   end $$`,
];

const messages = [
  'drop index messages_email_id_index',
  'create index messages_email_id_index on messages (email_id) where size > 0',
];

export const events: Knex.Migration = {
  async up(knex) {
    const isPostgres = knex.client.config.client === 'pg';
    for (const statement of [...(isPostgres ? postgres : sqlite), ...messages]) await knex.raw(statement);
  },
  async down() {
    throw new Error('migrations go forward only; restore the backup made before the upgrade');
  },
};
