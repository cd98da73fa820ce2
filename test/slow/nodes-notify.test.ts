/** Any user of the database can send a notification: nothing that one says stops mail, and none is believed unseen. */
import test from 'ava';
import { contextOfFile } from '#lab/context-of-file.ts';
import { asRoleWithoutRights } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { newId } from '#platform/base/id.ts';

let world: World;
const context = contextOfFile();

test.before(async () => {
  world = await startWorld(context, { database: 'postgres' });
});

const backlogs: Record<string, unknown[]> = {
  'an id that is none': [['there.invalid', 'no-id']],
  'an id with a zero': [['there.invalid', '\u0000']],
  'a domain with a zero': [['there.invalid\u0000', newId()]],
  'a lone surrogate': [['\ud800.invalid', newId()]],
  'no domain': [[7, newId()]],
  'a domain without mail': [['nothing.invalid', newId()]],
  'sixty organizations that do not exist': Array.from({ length: 60 }, () => ['there.invalid', newId()]),
};

for (const [index, [what, lanes]] of Object.entries(backlogs).entries()) {
  test.serial(`${what}: what is due, retried or scheduled is delivered as before`, async (t) => {
    const retried = await world.send({ to: `greylist+${index}@there.invalid`, subject: what });
    await world.when(retried.body.emailId, ({ status }) => status === 'deferred');
    const scheduledAt = new Date(world.clock.now() + 60_000).toISOString();
    const scheduled = await world.send({ to: 'ann@there.invalid', subject: what, scheduledAt });
    await asRoleWithoutRights(world.config.databaseUrl!, async (query) => {
      for (const from of ['other', 'x'.repeat(3000)])
        await query('select pg_notify($1, $2)', ['postern', JSON.stringify({ from, events: true, lanes })]);
      await query('select pg_notify($1, $2)', ['postern', '{']);
    });
    const rest = ({ status }: { status: string }) => status === 'delivered';
    for (const { body } of [retried, scheduled]) await world.passUntil(body.emailId, rest);
    const { body } = await world.send({ to: 'ben@there.invalid', subject: what });
    await world.when(body.emailId, rest);
    t.pass();
  });
}

test.serial('a domain that a notification names is not looked up unless its mail is due', async (t) => {
  await asRoleWithoutRights(world.config.databaseUrl!, async (query) => {
    const lanes = [['invented.invalid', world.orgId]];
    await query('select pg_notify($1, $2)', ['postern', JSON.stringify({ from: 'other', lanes })]);
  });
  const { body } = await world.send({ to: 'ann@there.invalid', subject: 'After it' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.deepEqual(
    world.dns.queries.filter(({ name }) => name === 'invented.invalid'),
    [],
  );
});
