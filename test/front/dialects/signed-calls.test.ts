/** A service whose SDKs sign their calls and never send the secret fits the contract of a dialect (front/dialects/dialect.ts). */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import Koa, { type Context } from 'koa';
import { findCaller } from '#accounts/api-keys.ts';
import { takeRequest } from '#accounts/limits.ts';
import { findKeyByHash } from '#accounts/rows/keys.ts';
import type { Dialect } from '#front/dialects/dialect.ts';
import { serveDialects } from '#front/dialects/serve-dialects.ts';
import { Admission } from '#front/http/admission.ts';
import { createAuthThrottle } from '#front/http/auth-throttle.ts';
import { createAuthorize } from '#front/http/authorize.ts';
import { smallJson } from '#front/http/body-limits.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { Refusal, statusOf } from '#platform/values/refusal.ts';

interface Pair {
  secret: string;
  key: string;
}

const sign = (secret: string, method: string, path: string, body: string | Buffer) =>
  createHmac('sha256', secret).update(`${method} ${path}\n`).update(body).digest('hex');

/** `Authorization: HMAC <id of the pair>:<signature of method, path and body>`. */
function signedDialect(pairs: Map<string, Pair>): Dialect {
  return {
    name: 'resend',
    verify({ req, method, path }: Context) {
      const [, id, signature] = /^HMAC (\w+):(\w+)$/.exec(req.headers.authorization ?? '') ?? [];
      const pair = id === undefined ? undefined : pairs.get(id);
      if (signature === undefined) return null;
      return {
        find: async (find) => (pair ? find(pair.key) : null),
        fault: 'The signature is not valid.',
        covers(body) {
          const right = Buffer.from(sign(pair!.secret, method, path, body));
          const given = Buffer.from(signature);
          return right.length === given.length && timingSafeEqual(right, given);
        },
      };
    },
    routes: [
      {
        route: 'POST /notes',
        grant: 'email:send',
        body: smallJson,
        respond: async ({ orgId, body }) => ({ orgId, body }),
      },
      { route: 'GET /notes', grant: 'email:read', respond: async ({ orgId }) => ({ orgId }) },
    ],
    claims: () => false,
    writeRefusal(context, { code, message }) {
      context.status = statusOf[code];
      context.body = { message };
    },
  };
}

async function startSigned(t: ExecutionContext) {
  const world = await startWorld(t);
  const { db, clock, key, orgId } = world;
  const counted: string[] = [];
  const authorize = createAuthorize({
    findCaller: async (given) => {
      const caller = await findCaller(given, (hash) => findKeyByHash(db, hash), clock.now());
      return caller && { ...caller, limits: { perSecond: 5, perDay: null } };
    },
    async take(org, limits) {
      counted.push(org);
      return takeRequest({ requests: 0, secondSince: 0, secondRequests: 0 }, limits, clock.now());
    },
    async uncount() {},
    authThrottle: createAuthThrottle(clock),
  });
  const pairs = new Map([['P1', { secret: 's3cret', key }]]);
  const parts = { authorize, admission: new Admission(4, clock), clock, hasSpace: () => true };
  const app = new Koa();
  app.use(async (context, next) => {
    context.state.client = '127.0.0.1';
    await next().catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      context.state.writeRefusal(context, error);
    });
  });
  app.use(serveDialects([signedDialect(pairs)], parts as never));
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  const call = async (method: string, signature: string, body?: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/notes`, {
      method,
      headers: { authorization: `HMAC ${signature}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });
    return { status: response.status, body: await response.json() };
  };
  return { call, counted, orgId };
}

test('a signed call is one of its key, which it never sends', async (t) => {
  const { call, counted, orgId } = await startSigned(t);
  const body = '{"text":"Hi"}';
  t.deepEqual(await call('POST', `P1:${sign('s3cret', 'POST', '/notes', body)}`, body), {
    status: 200,
    body: { orgId, body: { text: 'Hi' } },
  });
  t.deepEqual(await call('GET', `P1:${sign('s3cret', 'GET', '/notes', '')}`), {
    status: 200,
    body: { orgId },
  });
  t.deepEqual(counted, [orgId, orgId]);
});

test('a call whose signature is of another body, or of an unknown pair, is refused and does not count', async (t) => {
  const { call, counted } = await startSigned(t);
  const signature = sign('s3cret', 'POST', '/notes', '{"text":"Hi"}');
  for (const one of [`P1:${signature}`, `P2:${signature}`])
    t.deepEqual(await call('POST', one, '{"text":"Ho"}'), {
      status: 401,
      body: { message: 'The signature is not valid.' },
    });
  t.deepEqual(counted, []);
});
