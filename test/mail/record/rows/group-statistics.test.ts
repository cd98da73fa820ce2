/** Figures by group: in the transaction of those by hour, bounded however many names callers choose, gone with their organization. */
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { removeOrganization } from '#accounts/rows/remove-organization.ts';
import { kinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { figuresBy, type Grouping } from '#mail/record/figures-by-group.ts';
import { saveRoutes } from '#mail/record/rows/destination-status-rows.ts';
import { deleteEmails } from '#mail/record/rows/forget-emails.ts';
import { forgetGroups } from '#mail/record/rows/group-statistics.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const dayMs = 86_400_000;
const today = Date.parse('2026-03-02');

interface Sent {
  to: string;
  from?: string;
  tags?: Record<string, string>;
  keyId?: string | null;
  isTest?: boolean;
  at?: number;
  events: [type: string, data?: object][];
}

/** The world's own service is stopped: the tests count by themselves. */
async function still(t: ExecutionContext, database: (typeof kinds)[number]) {
  const world = await startWorld(t, { database });
  await world.stop();
  return { world, db: world.db, orgId: await insertOrganization(world.db, 'Shop', 0) };
}

/** Emails with one delivery each, whose events follow each other after 700 ms. */
async function happen({ db }: World, orgId: string, sent: Sent[]): Promise<void> {
  const rows = { emails: [] as object[], deliveries: [] as object[], events: [] as object[] };
  for (const {
    to,
    from = 'shop@example.com',
    tags = {},
    keyId = null,
    isTest = false,
    at = today,
    events,
  } of sent) {
    const id = uuid();
    const shared = { org_id: orgId, created_at: at, updated_at: at };
    rows.emails.push({
      ...shared,
      id,
      key_id: keyId,
      message_id: id,
      sender: from,
      subject: '',
      recipients: '[]',
      tags: JSON.stringify(tags),
      tracking: '{}',
      credits: 1,
      is_test: isTest,
    });
    rows.deliveries.push({
      ...shared,
      id: uuid(),
      email_id: id,
      position: 0,
      recipient: to,
      domain: to.slice(to.lastIndexOf('@') + 1),
      status: 'delivered',
      expires_at: at,
    });
    for (const [index, [type, data = {}]] of events.entries())
      rows.events.push({
        id: uuid(),
        org_id: orgId,
        email_id: id,
        type,
        recipient: to,
        at: at + index * 700,
        data: JSON.stringify(data),
      });
  }
  await db.transaction(async (trx) => {
    for (const table of ['emails', 'deliveries', 'events'] as const)
      await insertRows(trx, table, rows[table]);
  });
  while ((await sumUp(db)) > 0);
}

const delivered: Sent['events'] = [['email.queued'], ['email.delivered']];

const bounced = (type: string, category: string, fault: string): Sent['events'] => [
  ['email.queued'],
  ['email.bounced', { attempt: 1, bounce: { type, category, fault, diagnostic: '550 no' } }],
];

const ever = { since: 0, until: 8_640_000_000_000_000 };

for (const kind of kinds) {
  test(`${kind}: mail counts for its domain, provider, tags, sender, key, reason and fault`, async (t) => {
    const { world, db, orgId } = await still(t, kind);
    const keyId = uuid();
    await saveRoutes(
      db,
      new Map([
        ['gmail.com', 'google'],
        ['corp.example', 'alt1.aspmx.l.google.com,aspmx.l.google.com'],
        ['there.example', 'mx.post.example'],
      ]),
    );
    await happen(world, orgId, [
      {
        to: 'a@gmail.com',
        from: 'Shop <Shop@example.com>',
        tags: { kind: 'order', new: '' },
        keyId,
        events: delivered,
      },
      { to: 'b@corp.example', tags: { kind: 'order' }, keyId, events: delivered },
      { to: 'c@there.example', events: bounced('hard', 'unknown_user', 'recipient') },
      { to: 'd@there.example', events: bounced('soft', 'mailbox_full', 'recipient') },
      { to: 'e@nowhere.example', events: [['email.queued'], ['email.complained']] },
      { to: 'f@gmail.com', isTest: true, events: delivered },
    ]);
    const by = async (grouping: Grouping) =>
      (await figuresBy(db, orgId, grouping, ever)).map(
        ({ name, sent, delivered: arrived, bounced: back, hard }) =>
          [name, sent, arrived, back, hard].join(' '),
      );
    t.deepEqual(await by('domain'), [
      'there.example 2 0 2 1',
      'corp.example 1 1 0 0',
      'gmail.com 1 1 0 0',
      'nowhere.example 1 0 0 0',
    ]);
    t.deepEqual(await by('provider'), ['post.example 2 0 2 1', 'Gmail 2 2 0 0', 'unknown 1 0 0 0']);
    t.deepEqual(await by('tag'), ['kind=order 2 2 0 0', 'new 1 1 0 0']);
    t.deepEqual(await by('sender'), ['shop@example.com 5 2 2 1']);
    t.deepEqual(await by('key'), ['dashboard 3 0 2 1', `${keyId} 2 2 0 0`]);
    t.deepEqual(await by('reason'), ['mailbox_full 0 0 1 0', 'unknown_user 0 0 1 1']);
    t.deepEqual(await by('fault'), ['recipient 0 0 2 1']);
    const [first] = await figuresBy(db, orgId, 'tag', ever);
    t.is(first!.took[3], 2, 'within a second');
    t.deepEqual(await figuresBy(db, orgId, 'tag', { since: today + dayMs, until: today + 2 * dayMs }), []);
    t.deepEqual(await figuresBy(db, uuid(), 'tag', ever), []);
  });

  test(`${kind}: the names with the most mail are shown, also those that come late; the rest is one`, async (t) => {
    const { world, db, orgId } = await still(t, kind);
    const small = Array.from({ length: 30 }, (_, n) => ({ to: `a@d${n}.example`, events: delivered }));
    await happen(world, orgId, small);
    const late = Array.from({ length: 5 }, (_, n) => ({ to: `u${n}@large.example`, events: delivered }));
    await happen(world, orgId, late);
    const domains = await figuresBy(db, orgId, 'domain', ever);
    t.is(domains.length, 21);
    t.like(domains[0], { name: 'large.example', sent: 5 });
    t.like(domains.at(-1), { name: '', sent: 11, delivered: 11 });
  });

  test(`${kind}: names that callers choose are bounded, and may be any text`, async (t) => {
    const { world, db, orgId } = await still(t, kind);
    const oneOff = (n: number) => ({
      to: `a@d${n}.example`,
      from: `s${n}@example.com`,
      tags: { order: `${n}`, ['long'.repeat(16)]: `${'ü'.repeat(250)}${n}`, odd: `\0\uD800'"\n;${n}` },
      events: delivered,
    });
    for (let from = 0; from < 900; from += 150)
      await happen(
        world,
        orgId,
        Array.from({ length: 150 }, (_, n) => oneOff(from + n)),
      );
    await happen(
      world,
      orgId,
      [...Array(40)].map(() => ({ to: 'a@b.example', tags: { kind: 'x' }, events: delivered })),
    );
    const rows = await db('group_statistics').where({ org_id: orgId }).select('kind', 'name');
    for (const [group, some] of Map.groupBy(rows, (row) => row.kind))
      t.true(some.length <= 201, `${group} has ${some.length}`);
    const tags = await figuresBy(db, orgId, 'tag', ever);
    t.like(tags[0], { name: 'kind=x', sent: 40 });
    t.is(
      tags.reduce((sum, { sent }) => sum + sent, 0),
      2740,
      'none is lost',
    );
    t.is(tags.length, 51);
  });

  test(`${kind}: old days go after their time, all days with their organization`, async (t) => {
    const { world, db, orgId } = await still(t, kind);
    const other = await insertOrganization(db, 'Other', 0);
    for (const id of [orgId, other])
      for (const day of [0, 1, 9, 20])
        await happen(world, id, [{ to: 'a@b.example', at: today + day * dayMs, events: delivered }]);
    const daysOf = async (id: string) =>
      new Set(await db('group_statistics').where({ org_id: id }).pluck('day')).size;
    t.is(await forgetGroups(db, today), 0);
    t.is(await forgetGroups(db, today + dayMs), 6);
    t.is(await daysOf(orgId), 3);
    await removeOrganization(db, orgId, { deleteEmails, onProgress() {} });
    t.deepEqual([await daysOf(orgId), await daysOf(other)], [0, 3]);
  });
}
