/** A logger or an SDK shows only `message`: it says what is wrong in the request, and how it would be right. */
import test from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { costsAtMost } from '#lab/cost.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';

const file = worldOfFile();

const said = async (world: World, fields: object) => {
  const { status, body } = await world.send({ to: 'ann@there.invalid', ...fields });
  return `${status} ${body.error} ${body.message}`;
};

const cases: [what: string, fields: object, message: string | RegExp][] = [
  ...table<[string, object, string | RegExp]>('api/fault-words'),
  [
    'three faults',
    { to: undefined, subject: undefined, replyTo: 'x' },
    /^The request is not valid\. to: .*\. \(and 2 more issues\)$/,
  ],
  [
    'two faults',
    { subject: undefined, replyTo: 'x' },
    /^The request is not valid\. .*\. \(and 1 more issue\)$/,
  ],
];

for (const [what, fields, message] of cases) {
  test.serial(`the message of an error names the fault and its cure: ${what}`, async (t) => {
    const world = await asNewTenant(file());
    const answer = await said(world, fields);
    if (typeof message === 'string') t.is(answer, `400 VALIDATION_ERROR ${message}`);
    else t.regex(answer.replace('400 VALIDATION_ERROR ', ''), message);
  });
}

test.serial('a domain that is not registered is told how to register it', async (t) => {
  const world = await asNewTenant(file());
  t.regex(
    await said(world, { from: 'a@new.example' }),
    /^403 DOMAIN_NOT_FOUND .*organization\. Its domains: sender\.invalid\. Register it .*postern domain add new\.example, or with POST \/api\/public\/domains and \{"name": "new\.example"\}/,
  );
});

test.serial('a query that is not valid is named in the message, too', async (t) => {
  const world = await asNewTenant(file());
  const { body } = await world.call('GET', '/api/public/emails?limit=x');
  t.is(body.message, 'A parameter of the query is not valid. limit: must be a whole number from 1 to 100.');
});

test.serial('a text that only looks like a list of addresses costs nothing', async (t) => {
  const world = await asNewTenant(file());
  await costsAtMost(t, 5_000, async () => {
    t.regex(await said(world, { to: 'a@b.org,'.repeat(500_000) }), /to: must be a plain email address/);
  });
});

test.serial('a test key is strict, unless it is made otherwise', async (t) => {
  const world = await asNewTenant(file());
  const made = async (options: object) =>
    makeKey(
      world.db,
      { orgId: world.orgId, label: 'k', scopes: ['full_access'], ...options },
      world.clock.now(),
    );
  const answerTo = async ({ key }: { key: string }) => {
    const body = {
      from: 'app@sender.invalid',
      to: 'a@there.invalid',
      subject: 'x',
      text: 'x',
      reply_to: 'b@c.org',
    };
    const response = await fetch(`${world.url()}/api/public/email/send`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return `${response.status} ${await response.text()}`;
  };
  t.regex(
    await answerTo(await made({ test: true })),
    /^400 .*reply_to: unknown member; did you mean replyTo\?/,
  );
  t.regex(await answerTo(await made({ test: true, strict: false })), /^200 /);
  t.regex(await answerTo(await made({})), /^200 /);
  const create = async (options: object) => {
    const body = JSON.stringify({ label: 'x', scopes: ['email:send'], test: true, ...options });
    return (await world.call('POST', '/api/public/keys', { body })).body.strict;
  };
  t.deepEqual([await create({}), await create({ strict: false })], [true, false]);
});

test.serial('GET on the path of sends says to send with POST', async (t) => {
  const world = await asNewTenant(file());
  const { status, body, headers } = await world.call('DELETE', '/api/public/email/send');
  t.is(status, 405);
  t.regex(body.message, /Send with POST \/api\/public\/email\/send\.$/);
  t.regex(headers.get('allow')!, /POST/);
});

test('an object without a toString of its own, and a long list, are told what is right', async (t) => {
  const world = await asNewTenant(file());
  for (const subject of [{ toString: null, '': true }, Array(50).fill({ valueOf: 1, toString: 2 })]) {
    const body = JSON.stringify({ from: 'a@sender.invalid', to: 'b@there.invalid', subject, text: 'x' });
    const { status, body: said } = await world.call('POST', '/api/public/email/send', { body });
    t.is(status, 400);
    t.regex(said.message, /subject: must be a string, not (object|array)/);
  }
  const message = {
    personalizations: [{ to: [{ email: 'b@there.invalid' }] }],
    from: { email: 'a@sender.invalid' },
    subject: 's',
    content: [{ type: 'text/plain', value: 'x' }],
    custom_args: { a: { toString: null } },
  };
  const init = { body: JSON.stringify(message) };
  const response = await fetch(`${world.url()}/v3/mail/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
    ...init,
  });
  t.true(response.status < 500, String(response.status));
});
