/** Paths of other services that Postern does not have: SDKs, Terraform providers and dashboards ask for them first. */
import test from 'ava';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant } from '#lab/scenes/world.ts';

const file = worldOfFile();

// biome-ignore lint/suspicious/noExplicitAny: what the API says is what the tests look at
const bodyOf = (response: Response): Promise<any> => response.json();

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` });
const token = (key: string) => ({ 'x-postmark-server-token': key });
const account = (key: string) => ({ 'x-postmark-account-token': key });

const services = {
  resend: {
    headers: [bearer],
    paths: ['/contacts', '/broadcasts/1/send', '/audiences', '/templates/x/y', '/topics'],
    members: ['message', 'name', 'statusCode'],
  },
  postmark: {
    headers: [token, account],
    paths: [
      '/templates',
      '/triggers/inboundrules',
      '/stats/outbound/sends',
      '/v3/ips',
      '/email/bulk/1',
      '/x',
    ],
    members: ['ErrorCode', 'Message'],
  },
  sendgrid: {
    headers: [bearer],
    paths: ['/v3/ips', '/v3/ips/pools/a/b', '/v3/templates', '/v3/user/webhooks/event/settings', '/v3/new'],
    members: ['errors'],
  },
  mailgun: {
    headers: [basic],
    paths: [
      '/v1/subaccounts',
      '/v2/x',
      '/v3/D/limits/tag',
      '/v3/ips',
      '/v4/domains',
      '/v5/users',
      '/v1/a/b/c',
    ],
    members: ['message'],
  },
};

test.serial('an unknown path of a service is answered 404 in its form, whatever the path', async (t) => {
  const world = await asNewTenant(file());
  for (const [name, { headers, paths, members }] of Object.entries(services))
    for (const path of paths)
      for (const prefix of ['', '/', `/compat/${name}`])
        for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
          for (const header of headers) {
            const said = `${method} ${prefix}${path} of ${name}`;
            const response = await fetch(`${world.url()}${prefix}${path}`, {
              method,
              headers: header(world.key),
            });
            const text = await response.text();
            t.is(response.status, 404, said);
            t.deepEqual(Object.keys(JSON.parse(text)).sort(), members, said);
            t.regex(text, /does not have (GET|POST|PUT|DELETE) .*\/docs/, said);
          }
});

test.serial('an unknown path counts as a request, and a wrong key there is refused', async (t) => {
  const world = await asNewTenant(file());
  await world.db('organizations').where({ id: world.orgId }).update({ requests_per_day: 1 });
  const get = (path: string, headers: Record<string, string>) => fetch(world.url() + path, { headers });
  t.is((await get('/v5/users', basic('em_wrong'))).status, 401);
  t.is((await get('/v5/users', basic(world.key))).status, 404);
  const second = await get('/contacts', bearer(world.key));
  t.is(second.status, 429);
  t.is((await bodyOf(second)).name, 'rate_limit_exceeded');
});

test.serial('our own paths keep our own form, with a key of any service', async (t) => {
  const world = await asNewTenant(file());
  for (const headers of [bearer(world.key), token(world.key), basic(world.key), {}])
    for (const path of ['/api', '/api/v1/send', '/api/public/sned', '/api/public/email']) {
      const response = await fetch(`${world.url()}${path}`, { headers });
      t.is(response.status, 404, path);
      t.like(await bodyOf(response), { error: 'NOT_FOUND', issues: [] }, path);
    }
  t.is((await fetch(`${world.url()}/docs`, { headers: bearer(world.key) })).status, 200);
  t.is((await fetch(`${world.url()}/docs`, { method: 'POST', headers: bearer(world.key) })).status, 405);
  // The path is nobody's, so the program says whose form is wanted.
  const unknown = async (agent: string) => {
    const headers = { ...bearer(world.key), 'user-agent': agent };
    return Object.keys(await bodyOf(await fetch(`${world.url()}/what/ever`, { headers })));
  };
  t.deepEqual(await unknown('curl/8'), ['error', 'message', 'issues']);
  t.deepEqual(await unknown('resend-node:6.38.0'), ['statusCode', 'name', 'message']);
  for (const headers of [{}, { authorization: 'Digest x' }])
    t.is((await bodyOf(await fetch(`${world.url()}/triggers`, { headers }))).error, 'NOT_FOUND');
});
