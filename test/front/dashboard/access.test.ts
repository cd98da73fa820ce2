/** Where nobody gets in: without a session, without a token, from another site, into another's organization, beyond one's role. */
import test, { type ExecutionContext } from 'ava';
import { invite } from '#accounts/people/people.ts';
import { type Role, roles } from '#accounts/people/roles.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { access, accessProblems, accessTable } from '#front/dashboard/security/route-access.ts';
import { checkHeaders, createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';

const somewhere = '01a1ffff-0000-7000-8000-000000000000';

/** One who is nobody's, one of each role in the tenant, an operator; and an organization that is nobody's. */
async function people(t: ExecutionContext) {
  const world = await startWorld(t);
  const [{ id: orgId }] = await world.db('organizations').select('id');
  const foreignId = await insertOrganization(world.db, 'Foreign', world.clock.now());
  const operator = createBrowser(world);
  await setUp(operator, world);
  const member = async (role: Role) => {
    const browser = createBrowser(world);
    const person = {
      email: `${role}@postern.invalid`,
      name: role,
      isOperator: false,
      member: { orgId, role },
    };
    const { link } = await invite(world.db, person, world.clock.now());
    await browser.get(link!.path);
    await browser.submit('', { password });
    return [role, browser] as const;
  };
  const members = Object.fromEntries(await Promise.all(roles.map(member)));
  const pathTo = (path: string, id: string) => path.replace(':org', id).replaceAll(/:\w+/g, somewhere);
  return {
    world,
    orgId: orgId as string,
    foreignId,
    operator,
    members: members as Record<Role, typeof operator>,
    pathTo,
  };
}

test('the table has each route and no other, or the service does not start', (t) => {
  const routes = accessTable().map(({ method, path, scope }) => ({ route: `${method} ${path}`, scope }));
  t.deepEqual(accessProblems(routes), []);
  t.regex(accessProblems(routes.slice(1))[0]!, /^GET \/dashboard has no route$/);
  t.regex(
    accessProblems([...routes, { route: 'GET /dashboard/new', scope: 'user' }])[0]!,
    /new has no entry$/,
  );
  const wrong = routes.map((one) =>
    one.scope === 'organization' ? { ...one, scope: 'user' as const } : one,
  );
  t.regex(accessProblems(wrong)[0]!, /is organization here and user on its page/);
  for (const { method, path, access: min } of accessTable()) {
    t.true(['GET', 'POST'].includes(method));
    if (path.startsWith('/dashboard/o/')) t.not(min, 'anyone', path);
  }
});

test('an organization that is not there, or whose id is none, is not found, whoever asks', async (t) => {
  const { members, operator, pathTo } = await people(t);
  const routes = accessTable().filter(({ scope }) => scope === 'organization');
  const asked = [
    [members.owner, somewhere],
    [members.owner, 'nonsense'],
    [operator, 'nonsense'],
  ] as const;
  // The routes take turns: what refuses them is one function for all.
  for (const [index, { method, path }] of routes.entries()) {
    const [browser, id] = asked[index % asked.length]!;
    if (method === 'POST' && browser.page().status !== 200) await browser.get('/dashboard/account');
    const headers = { 'x-csrf-token': method === 'POST' ? browser.csrf() : '' };
    const answer = await browser.ask(method, pathTo(path, id), { headers });
    t.is(answer.status, 404, `${method} ${path} with ${id}`);
  }
});

test('other bodies, too large ones, unknown paths and methods are refused in the dashboard’s own look', async (t) => {
  const { orgId, members } = await people(t);
  const path = `/dashboard/o/${orgId}/keys`;
  const { developer } = members;
  await developer.get(path);
  const _csrf = developer.csrf();
  const look = (answer: Awaited<ReturnType<typeof developer.get>>, status: number) => {
    t.is(answer.status, status);
    t.regex(answer.html, /<link rel="stylesheet"/);
    checkHeaders(t, answer);
  };
  look(
    await developer.ask('POST', path, { body: '{}', headers: { 'content-type': 'application/json' } }),
    415,
  );
  look(await developer.post(path, { _csrf, label: 'x'.repeat(70_000) }), 413);
  look(await developer.get('/dashboard/nowhere'), 404);
  look(await developer.get('/dashboard/o/%E0%A4%A/keys'), 404);
  look(await developer.ask('DELETE', path), 405);
  look(await developer.get(`${path}?after=nonsense`), 404);
  t.is((await developer.get('/')).path.slice(0, 10), '/dashboard');
  t.truthy(access['GET /dashboard']);
});

test('styles and scripts are kept for ever under the hash of what they hold', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  const { html } = await browser.get('/dashboard/sign-in');
  const urls = [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(([, url]) => url!);
  t.true(urls.length >= 4);
  for (const url of urls) {
    const asset = await browser.ask('GET', url);
    t.is(asset.status, 200, url);
    t.is(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    t.regex(asset.headers.get('content-type')!, /^(text\/(css|javascript)|image\/svg)/);
  }
  t.is((await browser.ask('GET', urls[0]!.replace(/assets\/[^/]+/, 'assets/other'))).status, 404);
  t.notRegex(html, /\son\w+=|style=|<style|<script>|javascript:/i);
});
