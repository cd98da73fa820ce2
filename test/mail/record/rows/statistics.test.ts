/** Figures by the hour: each event counts once, whoever dies or counts beside; none is counted before its time. */
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { kinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { latencyBounds, quantile } from '#mail/record/latency.ts';
import { forgetFigures, type HourFigures, hourMs, readFigures, sumUp } from '#mail/record/rows/statistics.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { openDatabase } from '#platform/database/engine/open.ts';

/** The world's own service is stopped: the tests count by themselves. */
async function still(t: ExecutionContext, database: (typeof kinds)[number]) {
  const world = await startWorld(t, { database });
  await world.stop();
  return world;
}

/** So many events of an organization, in order, a second apart. */
async function happen({ db }: World, orgId: string, types: string[], since: number): Promise<void> {
  const rows = types.map((type, index) => ({
    id: uuid(),
    org_id: orgId,
    email_id: null,
    type,
    recipient: null,
    at: since + index * 1000,
    data: '{}',
  }));
  await db.transaction((trx) => insertRows(trx, 'events', rows));
}

const total = (hours: HourFigures[], name: 'sent' | 'delivered' | 'bounced' | 'opened') =>
  hours.reduce((sum, hour) => sum + hour[name], 0);

for (const kind of kinds) {
  test(`${kind}: what was sent, delivered, opened and clicked stands in its hour, with the time it took`, async (t) => {
    const world = await startWorld(t, { database: kind });
    const { body } = await world.send({ to: ['ann@there.invalid', 'noone@there.invalid'] });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    const { id: orgId } = await world.db('organizations').where({ name: 'Tenant' }).first();
    const outcomes = await world.db('deliveries').where({ org_id: orgId });
    const delivered = outcomes.filter(({ status }) => status === 'delivered').length;
    t.true(delivered > 0);
    // They may be of two hours, and are not counted all at once.
    const hours = await world.clock.passUntil(
      async () => {
        const sofar = await readFigures(world.db, orgId, 0);
        return total(sofar, 'sent') === 2 && total(sofar, 'delivered') === delivered && sofar;
      },
      { step: '10s' },
    );
    for (const { hour } of hours) t.is(hour % hourMs, 0);
    const took = hours.flatMap((hour) => hour.took);
    t.is(
      took.reduce((sum, count) => sum + count),
      delivered,
      'each has a time',
    );
    t.is(total(hours, 'opened'), 0);
  });

  test(`${kind}: a person's first open counts, no other does`, async (t) => {
    const world = await still(t, kind);
    const { db } = world;
    const orgId = await insertOrganization(db, 'Reader', 0);
    const at = 10 * hourMs;
    const [emailId, recipient] = [uuid(), 'ann@there.invalid'];
    const email = { message_id: 'm', sender: 's', subject: '', recipients: '[]', tags: '{}', tracking: '{}' };
    await db('emails').insert({
      ...email,
      id: emailId,
      org_id: orgId,
      credits: 1,
      created_at: at,
      updated_at: at,
    });
    await db('deliveries').insert({
      id: uuid(),
      email_id: emailId,
      org_id: orgId,
      position: 0,
      recipient,
      domain: 'there.invalid',
      status: 'delivered',
      created_at: at,
      expires_at: at,
      updated_at: at,
      open_first_at: at + 2 * hourMs,
    });
    const event = (type: string, time: number) => ({
      id: uuid(),
      org_id: orgId,
      email_id: emailId,
      type,
      recipient,
      at: time,
      data: '{}',
    });
    const events = [
      event('email.delivered', at + 700),
      event('email.opened', at + hourMs),
      event('email.opened', at + 2 * hourMs),
      event('email.opened', at + 3 * hourMs),
    ];
    await db.transaction((trx) => insertRows(trx, 'events', events));
    while ((await sumUp(db)) > 0);
    const hours = await readFigures(db, orgId, 0);
    t.deepEqual(
      hours.filter(({ opened }) => opened > 0).map(({ hour, opened }) => ({ hour, opened })),
      [{ hour: at + 2 * hourMs, opened: 1 }],
    );
    t.is(hours[0]!.took[latencyBounds.indexOf(1000)], 1);
  });

  test(`${kind}: each event counts once, whoever counts beside and whoever dies before the commit`, async (t) => {
    const world = await still(t, kind);
    const orgId = await insertOrganization(world.db, 'Busy', 0);
    const types = Array.from({ length: 3500 }, (_, n) => (n % 7 === 0 ? 'email.bounced' : 'email.queued'));
    await happen(world, orgId, types, hourMs);
    const other = await openDatabase(world.config);
    t.teardown(() => other.destroy());
    await sumUp(world.db);
    // As one that is killed after its statements and before its commit.
    const fails = world.db.transaction(async (trx) => {
      await sumUp(trx);
      throw new Error('killed');
    });
    await t.throwsAsync(fails, { message: 'killed' });
    const all = async (db: typeof other) => {
      while ((await sumUp(db)) > 0);
    };
    await Promise.all([all(world.db), all(other)]);
    const hours = await readFigures(world.db, orgId, 0);
    t.is(total(hours, 'bounced'), 500);
    t.is(total(hours, 'sent'), 3000);
    t.is(hours.length, 1);
    t.deepEqual(await readFigures(world.db, orgId, 2 * hourMs), []);
    t.is(await forgetFigures(world.db, hourMs), 0);
    t.is(await forgetFigures(world.db, 2 * hourMs), 1);
    t.deepEqual(await readFigures(world.db, orgId, 0), []);
  });
}

test('the time within which a share arrived lies in its class', (t) => {
  const counts = (given: Record<number, number>) =>
    [...latencyBounds, Number.POSITIVE_INFINITY].map((bound) => given[bound] ?? 0);
  t.is(quantile(counts({}), 0.5), null);
  t.deepEqual(quantile(counts({ 100: 4 }), 0.5), { ms: 50, isMore: false });
  t.deepEqual(quantile(counts({ 100: 90, 5000: 10 }), 0.95), { ms: 3500, isMore: false });
  t.deepEqual(quantile(counts({ 100: 1, [Number.POSITIVE_INFINITY]: 9 }), 0.95), {
    ms: 21_600_000,
    isMore: true,
  });
});
