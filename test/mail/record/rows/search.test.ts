/** Search: what each filter finds, page by page, within bounds, on both databases. */
import test, { type ExecutionContext } from 'ava';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { kinds } from '#lab/database/databases.ts';
import { readContract } from '#lab/openapi.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { searchEmails } from '#mail/record/rows/search-emails.ts';
import { newId } from '#platform/base/id.ts';
import type { DeliveryStatus } from '#platform/values/glossary.ts';

const path = '/api/public/emails';
const start = Date.UTC(2026, 0, 10);

interface Put {
  subject: string;
  from?: string;
  to?: [address: string, status: DeliveryStatus][];
  tags?: Record<string, string>;
  at?: number;
}

/** An id of the time, so that what is put later is no older. */
function idAt(time: number): string {
  const digits = time.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}${newId().slice(13)}`;
}

async function put(world: World, orgId: string, emails: Put[]): Promise<string[]> {
  const ids = emails.map(({ at = start }) => idAt(at));
  const at = (index: number) => emails[index]!.at ?? start;
  await world.db.batchInsert(
    'emails',
    emails.map(({ subject, from = 'App <app@sender.invalid>', to = [], tags = {} }, index) => ({
      id: ids[index],
      org_id: orgId,
      message_id: `${subject}@x`,
      sender: from,
      subject,
      credits: 1,
      recipients: JSON.stringify(to.map(([address]) => address)),
      tags: JSON.stringify(tags),
      tracking: '{}',
      created_at: at(index),
      updated_at: at(index),
    })),
    50,
  );
  await world.db.batchInsert(
    'deliveries',
    emails.flatMap(({ to = [['a@there.invalid', 'delivered']] }, index) =>
      to.map(([recipient, status], position) => ({
        id: newId(),
        email_id: ids[index],
        org_id: orgId,
        position,
        recipient,
        status,
        domain: 'x',
        created_at: at(index),
        updated_at: at(index),
        expires_at: at(index),
      })),
    ),
    50,
  );
  return ids;
}

const orgOf = async (world: World) => (await world.db('organizations').first('id')).id as string;

async function found(t: ExecutionContext, world: World, query: string): Promise<string[]> {
  const { status, body } = await world.call('GET', `${path}?${query}`);
  t.is(status, 200, JSON.stringify(body));
  return body.emails.map(({ subject }: Put) => subject);
}

for (const database of kinds) {
  test(`${database}: each filter finds what it says, the newest first, of this organization alone`, async (t) => {
    const world = await startWorld(t, { database });
    const contract = await readContract(world);
    const hour = 60 * 60_000;
    await put(world, await orgOf(world), [
      { subject: 'one', at: start - 2 * hour, tags: { order: '1', kind: 'receipt' } },
      {
        subject: 'two',
        at: start - hour,
        from: 'Other <Other@Mail.Example.org>',
        to: [
          ['ann@there.invalid', 'delivered'],
          ['bob@there.invalid', 'bounced'],
        ],
      },
      { subject: 'three', to: [['Ann@THERE.invalid', 'queued']], tags: { order: '1', empty: '' } },
    ]);
    const other = await world.db.transaction((trx) => insertOrganization(trx, 'Other', start));
    await put(world, other, [{ subject: 'foreign' }]);

    const answer = await world.call('GET', path);
    contract.check(t, 'get', path, answer);
    t.is(answer.body.next, null);
    t.like(answer.body.emails[1], {
      subject: 'two',
      status: 'partially_delivered',
      to: ['ann@there.invalid', 'bob@there.invalid'],
      recipients: [{ status: 'delivered' }, { address: 'bob@there.invalid', status: 'bounced' }],
      createdAt: new Date(start - hour).toISOString(),
    });
    const cases: Record<string, string[]> = {
      '': ['three', 'two', 'one'],
      'status=delivered': ['two', 'one'],
      'status=partially_delivered': ['two'],
      'status=bounced': ['two'],
      'status=queued': ['three'],
      'status=held': [],
      'to=ann@there.invalid': ['three', 'two'],
      'to=@There.invalid': ['three', 'two', 'one'],
      'to=@invalid.example': [],
      'from=other@mail.example.org': ['two'],
      'from=@mail.example.org': ['two'],
      'from=@example.org': [],
      'tag.order=1': ['three', 'one'],
      'tag.order=1&tag.kind=receipt': ['one'],
      'tag.empty=': ['three'],
      'tag.order=2': [],
      'tag.order=1&limit=1&limit=2': ['three', 'one'],
      'tag.__proto__=x': [],
      [`since=${new Date(start - hour).toISOString()}`]: ['three', 'two'],
      [`until=${new Date(start - hour).toISOString()}`]: ['one'],
      'since=2026-01-10': ['three'],
      'until=2026-01-10T00:00:00%2B01:00': ['one'],
      'status=bounced&to=ann@there.invalid&since=2026-01-09': ['two'],
      'status=bounced&to=ann@there.invalid&since=2026-01-10': [],
    };
    for (const [query, subjects] of Object.entries(cases))
      t.deepEqual(await found(t, world, query), subjects, query);

    const wrong: [query: string, field: string][] = table('db/wrong-searches');
    for (const [query, field] of wrong) {
      const refused = await world.call('GET', `${path}?${query}`);
      t.is(refused.status, 400, query);
      t.is(refused.body.issues[0].path[0], field, query);
      contract.check(t, 'get', path, refused);
    }
  });

  test(`${database}: pages follow each other without a gap or a repeat, and a rare find is come to in bounded steps`, async (t) => {
    const world = await startWorld(t, { database });
    const orgId = await orgOf(world);
    const many = Array.from(
      { length: 4600 },
      (_, n): Put => ({
        subject: `n${n}`,
        at: start + n * 60_000,
        tags: n === 7 ? { rare: 'yes' } : {},
      }),
    );
    const ids = (await put(world, orgId, many)).reverse();
    const walk = async (query: object, max: number) => {
      const seen: string[] = [];
      const steps: number[] = [];
      let after: string | undefined;
      do {
        const page = await searchEmails(world.db, { orgId, tags: {}, limit: max, after, ...query });
        seen.push(...page.emails.map(({ id }) => id));
        steps.push(page.emails.length);
        after = page.next ?? undefined;
      } while (after !== undefined);
      return { seen, steps };
    };
    t.deepEqual((await walk({}, 700)).seen, ids);
    const rare = await walk({ tags: { rare: 'yes' } }, 10);
    t.deepEqual(rare.seen, [ids.at(-8)!]);
    t.deepEqual(rare.steps, [0, 0, 1]);
    // A window is gone to at once, whatever lies before and after it.
    const window = { since: start + 6 * 60_000, until: start + 9 * 60_000 };
    const inWindow = await walk({ ...window, tags: { rare: 'yes' } }, 10);
    t.deepEqual(inWindow, { seen: rare.seen, steps: [1] });
    t.is((await walk(window, 10)).seen.length, 3);
  });
}
