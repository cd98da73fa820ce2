/** How many files are fetched at once, which time counts, and what a redirect may lead to. The clock is the test's own. */
import test, { type ExecutionContext } from 'ava';
import { createFetchAttachments } from '#front/api/send/fetch-attachments.ts';
import { manualClock } from '#lab/clock.ts';
import { startDns } from '#lab/dns/dns.ts';
import { startFileServer } from '#lab/scenes/file-server.ts';
import { until } from '#lab/until.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { createDownload } from '#mail/webhooks/guarded-get.ts';

const roomy = { add: () => true as const };
const never = new AbortController().signal;

async function start(t: ExecutionContext, location?: (port: number) => string) {
  const dns = await startDns({
    'files.invalid': { A: ['127.0.0.1'] },
    'inside.invalid': { A: ['127.0.0.1'] },
  });
  t.teardown(dns.close);
  const clock = manualClock();
  const guard = { resolve: createResolver([dns.address]), allowPrivate: true };
  const files = await startFileServer(t, (path, response) => {
    if (path !== '/moved') return;
    // From here on the guard refuses this machine: only the first server counts as a public one.
    guard.allowPrivate = false;
    response.writeHead(302, { location: location!(files.port) }).end();
  });
  const fetchAll = createFetchAttachments(createDownload(guard), clock);
  const get = (
    path: string,
    count: number,
    { orgId = 'one', stopped = never, slot = roomy as ByteHold } = {},
  ) => fetchAll(orgId, Array(count).fill({ filename: 'a', url: `${files.url}${path}` }), slot, stopped);
  /** Answers what is asked for now. */
  const serve = () => {
    for (const response of files.open) response.end('a');
  };
  return { files, clock, get, serve };
}

type ByteHold = Parameters<ReturnType<typeof createFetchAttachments>>[2];

test('at most 4 files of an email are fetched at once, and 16 of an organization', async (t) => {
  const { files, get, serve } = await start(t);
  const one = get('/a', 6);
  await until(() => files.open.size === 4);
  const more = [get('/b', 4), get('/b', 4), get('/b', 4)];
  const stopping = new AbortController();
  const stopped = t.throwsAsync(get('/d', 4, { stopped: stopping.signal }), { message: 'stopped' });
  const waiting = get('/c', 4);
  const other = get('/e', 1, { orgId: 'another' });
  await until(() => files.open.size === 17);
  t.deepEqual(new Set(files.asked), new Set(['/a', '/b', '/e']), 'another organization does not wait');
  stopping.abort(new Error('stopped'));
  await stopped;
  serve();
  await Promise.all([...more, other]);
  await until(() => files.open.size === 6);
  t.is(files.asked.filter((path) => path === '/a').length, 6);
  t.is(files.asked.filter((path) => path === '/c').length, 4);
  serve();
  t.is((await one).length, 6);
  t.is((await waiting)[0]!.content.toString(), 'a');
  t.false(files.asked.includes('/d'), 'nothing is fetched for a client that hung up while it waited');
});

test('the time in the queue does not count as time of the files, and has a limit of its own', async (t) => {
  const { files, clock, get, serve } = await start(t);
  const first = Array.from({ length: 4 }, () => get('/first', 4));
  await until(() => files.open.size === 16);
  const second = Array.from({ length: 4 }, () => get('/second', 4));
  const tooLate = get('/third', 1);
  await clock.advance(10_000);
  serve();
  await Promise.all(first);
  await until(() => files.asked.length === 32 && files.open.size === 16);
  const refused = t.throwsAsync(tooLate, { message: /is fetching 16 attachments/ });
  await clock.advance(10_000);
  await refused;
  serve();
  const fetched = await Promise.all(second);
  t.is(fetched.flat().length, 16, 'after 20 s, 10 of them in the queue');
  t.false(files.asked.includes('/third'));
});

test('bytes that do not fit in the slot are refused', async (t) => {
  const { files, get, serve } = await start(t);
  const refused = t.throwsAsync(get('/a', 1, { slot: { add: async () => false } }), {
    message: /too many large bodies/,
  });
  await until(() => files.open.size === 1);
  serve();
  await refused;
});

for (const [what, location] of [
  ['an address', (port: number) => `http://127.0.0.1:${port}/secret`],
  ['a name', (port: number) => `http://inside.invalid:${port}/secret`],
  ['a path', () => '/secret'],
] as const) {
  test(`a redirect to a private address is refused: ${what}`, async (t) => {
    const { files, get } = await start(t, location);
    const { issues } = (await t.throwsAsync(get('/moved', 1))) as unknown as {
      issues: { message: string }[];
    };
    t.regex(issues[0]!.message, /private/);
    t.deepEqual(files.asked, ['/moved']);
  });
}
