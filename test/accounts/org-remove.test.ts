/** `postern org remove` leaves no row of an organization, and everything of the others. */
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { inviteMember } from '#accounts/people/team.ts';
import { setMembership } from '#accounts/rows/memberships.ts';
import { findUserByEmail, insertUser } from '#accounts/rows/users.ts';
import { cliOf } from '#lab/cli.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';

const schema = readFileSync(
  new URL('../../src/platform/database/schema/schema.sqlite.sql', import.meta.url),
  'utf8',
);
const tables = [...schema.matchAll(/^CREATE TABLE (\w+) \(\n(?: {2}.*\n)*? {2}org_id /gm)].map(
  ([, name]) => name!,
);

async function rowsOf({ db }: World, orgId: string): Promise<Record<string, number>> {
  const counts = tables.map(async (table) => [table, (await db(table).where({ org_id: orgId })).length]);
  return Object.fromEntries((await Promise.all(counts)).filter(([, count]) => count !== 0));
}

/** Mail in several states, and a row of whatever else an organization has. */
async function fill(
  t: ExecutionContext,
  world: World,
  email: string,
): Promise<{ name: string; sent: string }> {
  const { json } = cliOf(t, world);
  const { name } = await world.db('organizations').where({ id: world.orgId }).first('name');
  const send = async (fields: object) => (await world.send({ subject: email, ...fields })).body.emailId;
  const sent = await send({ to: 'ann@there.invalid', idempotencyKey: 'once' });
  const mixed = await send({ to: ['unknown@there.invalid', 'tempfail@there.invalid'] });
  await send({
    to: 'ann@there.invalid',
    scheduledAt: new Date(world.clock.now() + 86_400_000).toISOString(),
  });
  await world.when(sent, ({ status }) => status === 'delivered');
  await world.when(
    mixed,
    ({ recipients: [one, other] }) => one.status === 'bounced' && other.status === 'deferred',
  );
  await json('suppression add gone@there.invalid --org', name);
  await json('webhook add https://hooks.invalid/ --org', name);
  const userId = (await insertUser(world.db, { email, name: email, isOperator: false }, 0))!;
  await setMembership(world.db, { userId, orgId: world.orgId, role: 'owner' }, 0);
  const member = { orgId: world.orgId, email: `invited-${email}`, name: 'Ann', role: 'viewer' as const };
  await inviteMember(world.db, member, { now: world.clock.now(), byOperator: false });
  return { name, sent };
}

for (const database of journeyKinds) {
  test(`${database}: an organization goes with all its rows, the others keep theirs`, async (t) => {
    const world = await startWorld(t, { database });
    const { sent } = await fill(t, world, 'ann@tenant.invalid');
    const other = await asNewTenant(world);
    const { name } = await fill(t, other, 'bea@other.invalid');
    const { json, refusal, cli } = cliOf(t, world);

    t.like(await json('org remove --dry-run', name), {
      dryRun: true,
      emails: 3,
      waiting: 2,
      keys: 1,
      users: 1,
    });
    t.regex(
      await refusal(1, 'org remove', name),
      /remove Tenant .* permanently, with 3 emails, .* add --yes/,
    );
    t.is((await other.send({ to: 'ann@there.invalid', subject: 'Still here' })).status, 200);

    const removed = cli('org remove --yes', name);
    const ticking = setInterval(() => world.clock.advance('1s'), 100);
    t.teardown(() => clearInterval(ticking));
    t.is((await removed).code, 0);
    t.is((await other.send({ to: 'ann@there.invalid' })).status, 401);
    t.deepEqual(await rowsOf(world, other.orgId), {});
    t.is(await findUserByEmail(world.db, 'bea@other.invalid'), null);
    // PostgreSQL checks them itself.
    if (database === 'sqlite') t.deepEqual(await world.db.raw('pragma foreign_key_check'), []);

    t.is((await world.get(sent)).status, 'delivered');
    t.like(await rowsOf(world, world.orgId), { emails: 3, suppressions: 2, webhooks: 1, memberships: 1 });
    t.regex(await refusal(1, 'org show', name), /there is no organization/);
  });
}

test('an organization gets a new name, unless another has it', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  await json('org create --name Other');
  t.like(await json('org rename Tenant', 'Acme GmbH'), { id: world.orgId, name: 'Acme GmbH' });
  t.like(await json('org rename', 'Acme GmbH', 'Acme GmbH'), { name: 'Acme GmbH' });
  t.regex(await refusal(1, 'org rename Other', 'Acme GmbH'), /an organization is named "Acme GmbH" already/);
});
