/** docs/design.md, section 2: credits, and changes that the command line makes beside the running server. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { until } from '#lab/until.ts';
import { isError, isSent } from './answer.ts';
import { elsewhere, openTenant, people, sharedWorld, someone, type Tenant, turningWorld } from './client.ts';

const world = sharedWorld();
const turned = turningWorld();

test('credits: one a recipient accepted; the quota first, then the wallet; in request order; the ledger adds up', async (t) => {
  const own = await openTenant(world(), { quota: 2, wallet: 3 });
  const to = ['d', 'gone', 'b', 'c', 'a'].map((name) => `${name}-${someone()}`);
  await own.suppress(to[1]!);
  await own.send();
  t.deepEqual(await own.books(), { emails: 1, quota: 1, wallet: 3, ledger: 4 });
  isSent(t, await own.send({ to: people(2) }));
  t.deepEqual(await own.books(), { emails: 2, quota: 0, wallet: 2, ledger: 2 });
  const { body } = await own.send({ to });
  t.deepEqual(
    [body.accepted, body.suppressed, body.insufficientCredit],
    [[to[0], to[2]], [to[1]], [to[3], to[4]]],
  );
  isError(t, await own.send(), '402 INSUFFICIENT_CREDITS');
  t.is((await own.get(body.emailId)).body.credits, 2);
  t.deepEqual(await own.books(), { emails: 3, quota: 0, wallet: 0, ledger: 0 });
});

test('credits: a bounce refunds nothing', async (t) => {
  const own = await openTenant(world(), { quota: 5 });
  const { body } = await own.send({ to: someone('nowhere.invalid') });
  await until(async () => (await own.get(body.emailId)).body.status === 'bounced');
  t.deepEqual(await own.books(), { emails: 1, quota: 4, wallet: 0, ledger: 4 });
});

test('credits: a ledger holds every movement and balances to zero', async (t) => {
  const own = await openTenant(world());
  const { json } = cliOf(t, world());
  await json(`credits quota ${own.orgId} 3`);
  await json(`credits grant ${own.orgId} 2`);
  isSent(t, await own.send({ to: people(4) }));
  isError(t, await own.send({ to: [] }), '400 VALIDATION_ERROR');
  isSent(t, await own.send());
  isError(t, await own.send(), '402 INSUFFICIENT_CREDITS');
  const { quota, wallet, ledger } = await json(`credits show ${own.orgId}`);
  t.like(quota, { limit: 3, used: 3, remaining: 0 });
  t.is(wallet, 0);
  const moved: number[] = ledger.map(({ change }: { change: number }) => change);
  const changes = moved.filter((change) => change !== 0);
  t.is(
    changes.reduce((sum, change) => sum + change, 0),
    0,
  );
  t.deepEqual(
    changes.toSorted((a, b) => a - b),
    [-4, -1, 2, 3],
  );
  t.true(ledger.some(({ balance }: { balance: number }) => balance === 0));
});

test('credits: credits.low at a tenth of the quota left, credits.exhausted at zero, each once until refilled', async (t) => {
  const own = await openTenant(world(), { quota: 20 });
  const news = () =>
    world().db('events').where({ org_id: own.orgId }).whereNull('email_id').orderBy('id').pluck('type');
  await own.send({ to: people(10) });
  await own.send({ to: people(7) });
  t.deepEqual(await news(), [], 'three are left');
  await own.send();
  t.deepEqual(await news(), ['credits.low'], 'two are left');
  await own.send();
  await own.send();
  await own.send();
  t.deepEqual(await news(), ['credits.low', 'credits.exhausted']);
  await cliOf(t, world()).json(`credits grant ${own.orgId} 5`);
  await own.send({ to: people(5) });
  t.deepEqual((await news()).slice(2).sort(), ['credits.exhausted', 'credits.low']);
});

test.serial('credits: where credits.low is told is a setting', async (t) => {
  const sender = await openTenant(turned(), { quota: 4 });
  const news = () =>
    turned().db('events').where({ org_id: sender.orgId }).whereNull('email_id').pluck('type');
  await sender.send();
  t.deepEqual(await news(), []);
  await sender.send();
  t.deepEqual(await news(), ['credits.low']);
});

// Changes from elsewhere: the command line beside the running server, after the server has seen the old state.

type Cli = ReturnType<typeof cliOf>;
const changes: Record<string, (own: Tenant, cli: Cli) => Promise<unknown>> = {
  'a key revoked: 401 UNAUTHORIZED': async ({ orgId }, { json }) => {
    const [{ id }] = await json(`key list --org ${orgId}`);
    return json(`key revoke ${id}`);
  },
  'a domain removed: 403 DOMAIN_NOT_FOUND': ({ orgId }, { json }) =>
    json(`domain remove sender.invalid --org ${orgId}`),
  'an address suppressed: 422 ALL_RECIPIENTS_SUPPRESSED': ({ orgId }, { json }) =>
    json(`suppression add ann@there.invalid --org ${orgId}`),
  'the quota taken away: 402 INSUFFICIENT_CREDITS': ({ orgId }, { json }) => json(`credits quota ${orgId} 0`),
  'the day’s requests limited: 429 RATE_LIMIT_EXCEEDED': ({ orgId }, { json }) =>
    json(`org limits ${orgId} --per-day 1`),
  'the day’s emails limited: 429 RATE_LIMIT_EXCEEDED': ({ orgId }, { json }) =>
    json(`org limits ${orgId} --emails-per-day 1`),
};

for (const [title, change] of Object.entries(changes)) {
  const [what, expected] = title.split(': ') as [string, string];
  test(`changes from elsewhere hold within a second: ${what}`, async (t) => {
    const own = await openTenant(world(), { quota: 1000 });
    let sends = 0;
    const send = () => own.send({ to: 'ann@there.invalid', subject: `${sends++}` }, { from });
    const from = elsewhere();
    isSent(t, await send());
    await change(own, cliOf(t, world()));
    const refused = await until(
      async () => {
        const answer = await send();
        return answer.status !== 200 && answer;
      },
      { what },
    );
    isError(t, refused, expected);
  });
}
