/**
 * Statistics by organization, UTC day and group: the recipient's domain, a tag, the sender, the key, the stream, the reason and
 * the fault of a bounce; and of mail to personal mailboxes, their provider and the sender's registered domain (mailbox-days.ts).
 * Written with those by hour (statistics.ts), so each event is counted once.
 *
 * Callers choose the names of tags, senders and domains, so a group keeps a bounded number of them a day: once it has more than
 * `maxNames`, those with the least mail are added to the rest, the row with an empty name. Which names of a day are shown by
 * themselves is decided when the day is read, so that a domain is not left out for having come late.
 */

import {
  type CountedEvents,
  type Counts,
  countNames,
  sumNames,
  sumsOf,
  tookNames,
} from '#mail/record/counts.ts';
import { jsonRows, query } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { storableName, tagNames, withoutKey } from '#platform/database/tables/mail-group.ts';
import { compareKey, domainOf, parseMailbox } from '#platform/values/address.ts';
import { mailboxProviderOf } from '#platform/values/mailbox-provider.ts';
import { addSums } from './add-sums.ts';
import { mailboxesName } from './mailbox-days.ts';

/** The kinds of groups, and how many names of a day are shown by themselves. */
const shownNames = {
  domain: 20,
  tag: 50,
  sender: 50,
  key: 50,
  stream: 50,
  reason: 50,
  fault: 50,
  mailboxes: 50,
} as const;

export type GroupKind = keyof typeof shownNames;

/** More of a day are never kept. */
const maxNames = 200;

/** The name of the row that has the rest. */
export const theRest = '';

const dayMs = 86_400_000;
const table = 'group_statistics';

interface Group {
  org_id: string;
  day: number;
  kind: GroupKind;
}

export async function addToGroups(trx: Trx, events: CountedEvents[]): Promise<void> {
  const groups = new Map<string, { group: Group; names: Map<string, CountedEvents[]> }>();
  const addressIn = addressReader();
  for (const event of events) {
    const { org_id, hour } = event;
    const day = hour - (hour % dayMs);
    for (const [kind, given] of namesOf(event, addressIn)) {
      const { names } = ofKey(groups, `${org_id} ${day} ${kind}`, () => ({
        group: { org_id, day, kind },
        names: new Map(),
      }));
      ofKey(names, storableName(given), () => []).push(event);
    }
  }
  await addRows(
    trx,
    [...groups.values()].flatMap(({ group, names }) => rowsOf(group, names)),
  );
  await foldLarge(
    trx,
    [...groups.values()].map(({ group }) => group),
  );
}

function ofKey<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function namesOf(
  { domain, sender, tags, key_id, stream, bounce }: CountedEvents,
  addressIn: (sender: string) => string,
): [GroupKind, string][] {
  const names: [GroupKind, string][] = [];
  if (domain !== null) names.push(['domain', domain]);
  if (bounce) names.push(['reason', bounce.category], ['fault', bounce.fault]);
  if (sender === null) return names;
  const address = addressIn(sender);
  names.push(['sender', address], ['key', key_id ?? withoutKey]);
  const provider = domain === null ? null : mailboxProviderOf(domain);
  if (provider !== null) names.push(['mailboxes', mailboxesName(provider, domainOf(address) ?? address)]);
  if (stream !== null) names.push(['stream', stream]);
  if (tags === null || tags === '{}') return names;
  for (const tag of tagNames(JSON.parse(tags))) names.push(['tag', tag]);
  return names;
}

/** Most mails of a batch have one of a few senders. */
function addressReader(): (sender: string) => string {
  const known = new Map<string, string>();
  return (sender) =>
    ofKey(known, sender, () => {
      const mailbox = parseMailbox(sender);
      return mailbox === null ? sender : compareKey(mailbox.address);
    });
}

/** The rows of a group; of more than `maxNames` names, those with the least events are one row. */
function rowsOf(group: Group, names: Map<string, CountedEvents[]>): object[] {
  const all = [...names];
  const isMany = all.length > maxNames;
  const sizeOf = (events: CountedEvents[]) => events.reduce((sum, { count }) => sum + count, 0);
  if (isMany) all.sort(([, a], [, b]) => sizeOf(b) - sizeOf(a));
  const kept: typeof all = isMany
    ? [...all.slice(0, maxNames / 2), [theRest, all.slice(maxNames / 2).flatMap(([, events]) => events)]]
    : all;
  return kept.map(([name, events]) => ({ ...group, name, ...sumsOf(events) }));
}

const primaryKey = ['org_id', 'day', 'kind', 'name'];

const addRows = (trx: Trx, rows: object[]) => addSums(trx, table, primaryKey, rows);

/** How much mail a row is about. */
const most = 'sent + delivered + bounced + expired + complained';

/** Groups that have more than `maxNames` keep the names that are shown. */
async function foldLarge(trx: Trx, groups: Group[]): Promise<void> {
  const { from, column } = jsonRows(trx, { org_id: 'text', day: 'bigint', kind: 'text' });
  const names = ['org_id', 'day', 'kind'];
  const isOfGroup = names.map((name) => `${table}.${name} = ${column(name)}`).join(' and ');
  const large = await query<Group>(
    trx,
    `select ${names.map((name) => `${column(name)} as ${name}`)} from ${from}
     where ${maxNames} < (select count(*) from ${table} where ${isOfGroup})`,
    [JSON.stringify(groups)],
  );
  for (const group of large) {
    const named = trx(table).where(group).whereNot({ name: theRest }).orderByRaw(`${most} desc, name`);
    const rows: Record<string, number>[] = await named.select();
    const rest = rows.slice(shownNames[group.kind]);
    const sums = sumNames.map((name) => [name, rest.reduce((sum, row) => sum + row[name]!, 0)]);
    await trx(table)
      .where(group)
      .whereIn(
        'name',
        rest.map(({ name }) => name!),
      )
      .delete();
    await addRows(trx, [{ ...group, name: theRest, ...Object.fromEntries(sums) }]);
  }
}

/** The sums of one name; of the rest: `theRest`. */
export interface GroupFigures extends Counts {
  name: string;
  /** Hard bounces. */
  hard: number;
  took: number[];
}

/** The groups of the days that begin from `since` to before `until`; the one with the most mail first, the rest last. */
export async function readGroups(
  db: Db,
  orgId: string,
  { kind, since, until }: { kind: GroupKind; since: number; until: number },
): Promise<GroupFigures[]> {
  const rows = await query<Record<string, string | number>>(
    db,
    `select shown, ${sumNames.map((name) => `sum(${name}) as ${name}`)}
     from (
       select *, case when place > ${shownNames[kind]} then '' else name end as shown from (
         select *, row_number() over (partition by day, name = '' order by ${most} desc, name) as place
         from ${table} where org_id = ? and kind = ? and day >= ? and day < ?) as placed) as named
     group by shown order by shown = '', sum(${most}) desc, shown`,
    [orgId, kind, since, until],
  );
  return rows.map((row) => ({
    name: String(row.shown),
    ...(Object.fromEntries(countNames.map((name) => [name, Number(row[name])])) as Counts),
    hard: Number(row.hard),
    took: tookNames.map((name) => Number(row[name])),
  }));
}

const rowsAtOnce = 500;

/** Deletes days from before `until`, some at a time; returns how many rows. */
export async function forgetGroups(db: Db, until: number): Promise<number> {
  const oldest = await db(table).where('day', '<', until).orderBy('day').limit(rowsAtOnce).select(primaryKey);
  if (oldest.length === 0) return 0;
  return db(table)
    .whereIn(
      primaryKey,
      oldest.map(({ org_id, day, kind, name }) => [org_id, day, kind, name]),
    )
    .delete();
}
