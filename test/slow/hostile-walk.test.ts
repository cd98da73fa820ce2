/**
 * Every route of a running server, with what is cheap to send and can be dear to read, in small sizes (see
 * test/lab/hostile-walk.ts). Each answer is small, the event loop never stands still for long, and the process goes on.
 */
import test, { type ExecutionContext } from 'ava';
import { runAlone } from '#lab/alone.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { stallsAtMost } from '#lab/cost.ts';
import { createSubmitter, hostileMails } from '#lab/hostile-mails.ts';
import { membersOf, routesOfServer } from '#lab/hostile-walk.ts';
import { startSubmission } from '#lab/scenes/submission.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { inWords, newTally, recordReply, type Tally, targetOf, walkRoute } from '#lab/walk-target.ts';

const maxStallMs = 200;
/** A header may have 100 KiB. */
const mailBytes = 90_000;
const oneOf = process.env.TEST_SLOW ? 2 : 96;

test('each body of a dialect and of the API has members to walk', (t) => {
  const without = routesOfServer().flatMap((route) =>
    route.bodies.some((body) => body.kind === 'json' && membersOf(route, body.json).length === 0) ||
    route.bodies.some((body) => body.kind === 'form' && route.example === undefined)
      ? [`${route.method} ${route.path}`]
      : [],
  );
  t.deepEqual(without, [], 'give them examples in test/fixtures/call-examples.json');
});

test.serial('cheap and hostile bodies, paths, queries and headers at every route', async (t) => {
  await runAlone(t);
  // A live key, because a test key is refused before its body is read where it may not manage.
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const bytes = { value: 64 * 1024, near: 32 * 1024 };
  const { key, orgId } = world;
  const target = await targetOf({ url: world.url(), key, orgId, browser, bytes, oneOf });
  const tally = newTally();
  for (const route of routesOfServer())
    await walkRoute(route, target, tally, ({ what }, make) => stallsAtMost(t, maxStallMs, make, what));
  await conclude(t, world, tally);
});

test.serial('hostile messages by submission', async (t) => {
  const world = await startSubmission(t, { tenant: { isTest: true } });
  const submitter = createSubmitter(world.ports.implicit, world.key);
  const tally = newTally();
  for (const mail of hostileMails(mailBytes, oneOf)) {
    const submit = async () => recordReply(tally, mail.what, await submitter.submit(mail));
    await stallsAtMost(t, maxStallMs, submit, mail.what);
  }
  submitter.close();
  await conclude(t, world, tally);
});

async function conclude(t: ExecutionContext, world: World, tally: Tally): Promise<void> {
  t.log(inWords(tally));
  t.deepEqual(tally.faults, []);
  // In an organization that the walk did not change.
  const other = await asNewTenant(world);
  t.is((await other.send({ to: 'ann@there.invalid' })).status, 200);
}
