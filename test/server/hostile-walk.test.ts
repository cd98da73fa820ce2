/**
 * Every route of a running server, with what is cheap to send and can be dear to read, in small sizes (see
 * test/lab/hostile-walk.ts). Each answer is small, the event loop never stands still for long, and the process goes on. Times
 * are of the processor, because other programs run beside the tests.
 */
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { createSubmitter, hostileMails } from '#lab/hostile-mails.ts';
import { membersOf, routesOfServer } from '#lab/hostile-walk.ts';
import { longestStall } from '#lab/longest-stall.ts';
import { startSubmission } from '#lab/scenes/submission.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { inWords, newTally, recordReply, type Tally, targetOf, walkRoute } from '#lab/walk-target.ts';

const maxStallMs = 200;
/** A header may have 100 KiB. */
const mailBytes = 90_000;
const oneOf = process.env.TEST_SLOW ? 2 : 48;

test('each body of a dialect and of the API has members to walk', (t) => {
  const without = routesOfServer().flatMap((route) =>
    route.bodies.some((body) => body.kind === 'json' && membersOf(route, body.json).length === 0) ||
    route.bodies.some((body) => body.kind === 'form' && route.example === undefined)
      ? [`${route.method} ${route.path}`]
      : [],
  );
  t.deepEqual(without, [], 'give them examples in test/lab/call-examples.ts');
});

test('cheap and hostile bodies, paths, queries and headers at every route', async (t) => {
  t.timeout(600_000);
  const world = await startWorld(t, { tenant: { isTest: true } });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const bytes = { value: 64 * 1024, near: 32 * 1024 };
  const { key, orgId } = world;
  const target = await targetOf({ url: world.url(), key, orgId, browser, bytes, oneOf });
  const tally = newTally();
  const longest = { ms: 0, what: '' };
  for (const route of routesOfServer()) {
    await walkRoute(route, target, tally, async ({ what }, make) => {
      const ms = await longestStall(make);
      if (ms > longest.ms) Object.assign(longest, { ms, what });
    });
  }
  await conclude(t, world, tally, longest);
});

test('hostile messages by submission', async (t) => {
  t.timeout(600_000);
  const world = await startSubmission(t, { tenant: { isTest: true } });
  const submitter = createSubmitter(world.ports.implicit, world.key);
  const tally = newTally();
  const longest = { ms: 0, what: '' };
  for (const mail of hostileMails(mailBytes, oneOf)) {
    const ms = await longestStall(async () => {
      const reply = await submitter.submit(mail);
      recordReply(tally, mail.what, reply);
    });
    if (ms > longest.ms) Object.assign(longest, { ms, what: mail.what });
  }
  submitter.close();
  await conclude(t, world, tally, longest);
});

async function conclude(
  t: ExecutionContext,
  world: World,
  tally: Tally,
  longest: { ms: number; what: string },
): Promise<void> {
  t.log(`${inWords(tally)}; longest stall ${Math.round(longest.ms)} ms: ${longest.what}`);
  t.deepEqual(tally.faults, []);
  t.true(longest.ms < maxStallMs);
  // In an organization that the walk did not change.
  const other = await asNewTenant(world);
  t.is((await other.send({ to: 'ann@there.invalid' })).status, 200);
}
