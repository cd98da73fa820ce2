/** Every POST of the access table: without a token, with another session's, or from another site, it does nothing. */
import test from 'ava';
import { pathOf, sampledTable } from '../lab/scenes/dashboard-samples.ts';
import { startScene } from '../lab/scenes/dashboard-scene.ts';

const posts = sampledTable.filter(({ method }) => method === 'POST');

test('a POST that no form of this session made is refused, and changes nothing', async (t) => {
  t.timeout(120_000);
  const scene = await startScene(t);
  const { a, b, operator, world } = scene;
  const other = await scene.browserOf(b.people.owner);
  t.true(posts.length > 10);
  for (const entry of posts) {
    const { route, access: min } = entry;
    const browser = await scene.browserOf(min === 'anyone' ? null : operator);
    const given = await entry.sample(scene, a, browser);
    const path = pathOf(entry, a.id, given);
    const before = await scene.everything();
    const own = browser._csrf;
    const post = (token: string | null, headers: Record<string, string> = {}) =>
      browser.ask('POST', path, {
        body: new URLSearchParams([
          ...Object.entries(given.fields ?? {}).flatMap(([name, value]) =>
            [value].flat().map((one) => [name, one] as [string, string]),
          ),
          ...(token === null ? [] : [['_csrf', token] as [string, string]]),
        ]).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      });
    const refused = {
      'no token': await post(null),
      'an empty token': await post(''),
      'the token of another session': await post(other._csrf),
      'another session’s, in a header': await post(null, { 'x-csrf-token': other._csrf }),
      'another origin': await post(own, { origin: 'https://evil.invalid' }),
      'an opaque origin': await post(own, { origin: 'null' }),
      'from another site': await post(own, { 'sec-fetch-site': 'cross-site' }),
      'from a neighbour of the domain': await post(own, { 'sec-fetch-site': 'same-site' }),
      'a GET of it': await browser.ask('GET', path),
    };
    const { 'a GET of it': get, ...posted } = refused;
    for (const [what, { status }] of Object.entries(posted)) t.is(status, 403, `${route}: ${what}`);
    const hasGet = sampledTable.some(({ method, path: one }) => method === 'GET' && one === entry.path);
    if (!hasGet) t.true([404, 405].includes(get.status), `${route}: by GET (${get.status})`);
    t.deepEqual(await scene.changedSince(before), [], `${route} changed something`);
    t.true(
      !browser.jar.has('postern-session') || (await browser.get('/dashboard/account')).status === 200,
      `${route} ended the session`,
    );
  }
  t.is(
    (await other.post('/dashboard/theme', { _csrf: other._csrf, theme: 'dark' }, { origin: world.url() }))
      .status,
    200,
  );
});
