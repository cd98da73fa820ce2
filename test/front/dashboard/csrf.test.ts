/** Every POST of the access table: without a token, with another session's, or from another site, it does nothing. */
import test from 'ava';
import { pairs, pathOf, sampledTable } from '#lab/scenes/dashboard-samples.ts';
import { startScene } from '#lab/scenes/dashboard-scene.ts';

const posts = sampledTable.filter(({ method }) => method === 'POST');

test('a POST that no form of this session made is refused, and changes nothing', async (t) => {
  const scene = await startScene(t, {}, 'sqlite');
  const { a, b, operator, world } = scene;
  const other = await scene.browserOf(b.people.owner);
  t.true(posts.length > 30);
  const [nobody, someone] = [await scene.browserOf(null), await scene.browserOf(operator)];
  const prepared = [];
  for (const entry of posts) {
    const browser = entry.access === 'anyone' ? nobody : someone;
    const given = await entry.sample(scene, a, browser);
    prepared.push({ ...entry, browser, fields: pairs(given.fields), url: pathOf(entry, a.id, given) });
  }
  const before = await scene.everythingAtRest();
  for (const [index, { route, path, browser, fields, url }] of prepared.entries()) {
    const own = browser._csrf;
    const post = (token: string | null, headers: Record<string, string> = {}) =>
      browser.ask('POST', url, {
        body: new URLSearchParams([...fields, ...(token === null ? [] : pairs({ _csrf: token }))]).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      });
    const attacks: [what: string, attack: () => ReturnType<typeof post>][] = [
      ['an empty token', () => post('')],
      ['the token of another session', () => post(other._csrf)],
      ['another session’s, in a header', () => post(null, { 'x-csrf-token': other._csrf })],
      ['another origin', () => post(own, { origin: 'https://evil.invalid' })],
      ['an opaque origin', () => post(own, { origin: 'null' })],
      ['from another site', () => post(own, { 'sec-fetch-site': 'cross-site' })],
      ['from a neighbour of the domain', () => post(own, { 'sec-fetch-site': 'same-site' })],
    ];
    t.is((await post(null)).status, 403, `${route}: no token`);
    // The routes take turns: what refuses them is one function for all.
    const [what, attack] = attacks[index % attacks.length]!;
    t.is((await attack()).status, 403, `${route}: ${what}`);
    const { status } = await browser.ask('GET', url);
    const hasGet = sampledTable.some(({ method, path: one }) => method === 'GET' && one === path);
    if (!hasGet) t.true([302, 404].includes(status), `${route}: by GET (${status})`);
    t.is(browser.jar.has('postern-session'), browser === someone, `${route} ended the session`);
  }
  t.is((await someone.get('/dashboard/account')).status, 200, 'the session goes on');
  t.deepEqual(await scene.changedSince(before), [], 'a refused POST changed something');
  t.is(
    (await other.post('/dashboard/theme', { _csrf: other._csrf, theme: 'dark' }, { origin: world.url() }))
      .status,
    200,
  );
});
