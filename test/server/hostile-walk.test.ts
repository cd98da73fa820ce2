/**
 * Every route of a running server, with what is cheap to send and can be dear to read, in small sizes (see test/lab/hostile-walk.ts).
 * Each answer is small, the event loop never stands still for long, and the process goes on. Times are of the processor, because
 * other programs run beside the tests.
 */
import test from 'ava';
import { ask } from '../lab/ask.ts';
import { createBrowser, setUp } from '../lab/browser/browser.ts';
import { formsOf } from '../lab/dashboard-forms.ts';
import { membersOf, routesOfServer, type Target, trialsOf, type WalkedRoute } from '../lab/hostile-walk.ts';
import { longestStall } from '../lab/longest-stall.ts';
import { asNewTenant, startWorld } from '../lab/scenes/world.ts';

const maxStallMs = 200;
const maxAnswer = 100_000;
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

/** For everybody: neither a key nor a parameter of the path. */
const isDocument = ({ method, path, service }: WalkedRoute) =>
  method === 'GET' && ['pages', 'api'].includes(service) && !/[:{]/.test(path);

test('cheap and hostile bodies, paths, queries and headers at every route', async (t) => {
  t.timeout(600_000);
  const world = await startWorld(t, { tenant: { isTest: true } });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const id = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
  const values = {
    org: world.orgId,
    id,
    name: 'sender.invalid',
    domain: 'sender.invalid',
    stream: 'outbound',
  };
  const forms = await formsOf(browser, values);
  await browser.get('/dashboard/account');
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const target: Target = {
    url: world.url(),
    key: world.key,
    values,
    bytes: { value: 64 * 1024, near: 32 * 1024 },
    signedIn: { cookie, csrf: browser.csrf() },
    forms,
    oneOf,
  };
  const walked = { routes: 0, bodies: 0, trials: 0 };
  const longest = { ms: 0, what: '' };
  const largest = { bytes: 0, what: '' };
  const plain = new Map<WalkedRoute, number>();
  const faults: string[] = [];
  const statuses: Record<number, number> = {};
  for (const route of routesOfServer()) {
    walked.routes += 1;
    walked.bodies += route.bodies.length;
    if (isDocument(route)) plain.set(route, (await ask(target.url + route.path)).bytes);
    for (const { what, url, question } of trialsOf(route, target)) {
      walked.trials += 1;
      const stall = await longestStall(async () => {
        const { status, bytes, text } = await ask(url, question);
        if (status === 0) faults.push(`${what}: no answer, ${text}`);
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status >= 500) faults.push(`${what}: ${status} ${text.slice(0, 200)}`);
        // A document of our own can be larger, whatever is asked.
        if (bytes > largest.bytes && bytes > (plain.get(route) ?? 0)) Object.assign(largest, { bytes, what });
      });
      if (stall > longest.ms) Object.assign(longest, { ms: stall, what });
    }
  }
  t.log(
    `${walked.routes} routes, ${walked.bodies} bodies, ${walked.trials} trials; longest stall ${Math.round(longest.ms)} ms: ${longest.what}; largest answer ${largest.bytes} bytes: ${largest.what}; statuses ${JSON.stringify(statuses)}`,
  );
  t.deepEqual(faults, []);
  t.true(longest.ms < maxStallMs);
  t.true(largest.bytes < maxAnswer);
  // In an organization that the walk did not change.
  const other = await asNewTenant(world);
  t.is((await other.send({ to: 'ann@there.invalid' })).status, 200);
});
