/**
 * A wrong method on a path that is there is 405 with Allow, in every API and the dashboard; never a bad id (a client that
 * sends with PUT, a health check with GET on the path for sending).
 */
import { once } from 'node:events';
import { request } from 'node:http';
import Router from '@koa/router';
import test from 'ava';
import { endpoints } from '#front/api/all-endpoints.ts';
import { dialectsNamed } from '#front/dialects/all-dialects.ts';
import { methodsOf } from '#front/http/own-methods.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { dialectNames } from '#platform/values/glossary.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

async function ask(world: World, method: string, path: string, headers: Record<string, string>) {
  const sent = request(`${world.url()}${path}`, { method, headers }).end();
  const [response] = await once(sent, 'response');
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode as number, allow: response.headers.allow as string | undefined, body };
}

const declared = (routes: string[]) => {
  const paths = new Map<string, string[]>();
  for (const route of routes) {
    const [method, path] = route.split(' ') as [string, string];
    if (/[:{(*]/.test(path)) continue;
    paths.set(path, [...(paths.get(path) ?? []), ...(method === 'GET' ? ['GET', 'HEAD'] : [method])]);
  }
  return [...paths];
};

test('every fixed path of our API', async (t) => {
  const world = await startWorld(t);
  const headers = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
  for (const [path, own] of declared(endpoints.map(({ route }) => route)))
    for (const method of methods.filter((one) => !own.includes(one))) {
      const { status, allow, body } = await ask(world, method, `/api/public${path}`, headers);
      t.is(status, 405, `${method} ${path}: ${body}`);
      t.deepEqual(allow?.split(', ').sort(), [...own].sort(), `${method} ${path}`);
      if (method !== 'HEAD') t.like(JSON.parse(body), { error: 'BAD_REQUEST', issues: [] });
    }
  const { body } = await ask(world, 'PATCH', '/api/public/email/send', headers);
  t.regex(
    JSON.parse(body).message,
    /^This path accepts only POST\. Send with POST \/api\/public\/email\/send\.$/,
  );
  const guessed = await ask(world, 'POST', '/api/public/emails', headers);
  t.regex(JSON.parse(guessed.body).message, / Send with POST \/api\/public\/email\/send\.$/);
  for (const path of ['/api/public/email/send/', '/api/public/EMAIL/Send'])
    t.is((await ask(world, 'PATCH', path, headers)).status, 405, path);
  t.is((await ask(world, 'GET', '/api/public/email/sent', headers)).status, 400, 'that is a bad id');
  t.is((await ask(world, 'GET', '/api/public/nowhere', headers)).status, 404);
});

test('every fixed path of the other services’ APIs', async (t) => {
  const world = await startWorld(t);
  const keys = {
    authorization: `Bearer ${world.key}`,
    'x-postmark-server-token': world.key,
    'x-postmark-account-token': world.key,
  };
  const basic = { authorization: `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}` };
  for (const { name, routes } of dialectsNamed(dialectNames))
    for (const [path, own] of declared(routes.map(({ route }) => route)))
      for (const method of methods.filter((one) => !own.includes(one))) {
        const headers = name === 'mailgun' ? basic : keys;
        const { status, allow, body } = await ask(world, method, `/compat/${name}${path}`, headers);
        t.is(status, 405, `${name} ${method} ${path}: ${body}`);
        t.truthy(allow);
        for (const one of own)
          t.true(allow!.split(', ').includes(one), `${name} ${method} ${path}: ${allow}`);
        t.false(allow!.split(', ').includes(method), `${name} ${method} ${path}: ${allow}`);
      }
});

test('the dashboard', async (t) => {
  const world = await startWorld(t);
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status, allow } = await ask(world, method, '/dashboard/sign-in', {});
    t.is(status, 405, method);
    t.regex(allow!, /GET/);
  }
});

test('a path with a parameter before what it names word for word', (t) => {
  const router = new Router();
  const nothing = () => {};
  router.get('/o/:org/list', nothing).post('/o/:org/:id', nothing).get('/o/:org/:id', nothing);
  router.delete('/o/new', nothing).get('/o/:org', nothing);
  const at = (path: string) => methodsOf(router.match(path, 'GET').path).toSorted();
  t.deepEqual(at('/o/1/list'), ['GET', 'HEAD']);
  t.deepEqual(at('/o/1/LIST/'), ['GET', 'HEAD']);
  t.deepEqual(at('/o/1/lists'), ['GET', 'HEAD', 'POST']);
  t.deepEqual(at('/o/new'), ['DELETE']);
  t.deepEqual(at('/o/2'), ['GET', 'HEAD']);
  t.deepEqual(at('/o/1/list/2'), []);
  t.deepEqual(at('/'), []);
});
