/** The OpenAPI document is valid and public, and has the same limits as the server. */
import { Validator } from '@seriousme/openapi-schema-validator';
import test from 'ava';
import { findOrganization, insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { operationsOf } from '#lab/openapi.ts';
import { baseUrl, exampleOptions, rename, sendPath, withContract } from '#lab/scenes/example-world.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant } from '#lab/scenes/world.ts';

const shared = worldOfFile(exampleOptions());

test('a public validator accepts the document, and its own examples fit its schemas', async (t) => {
  const { contract } = await withContract(await asNewTenant(shared()));
  const { document, faults } = contract;
  t.deepEqual(await new Validator().validate(structuredClone(document) as object as never), { valid: true });
  t.deepEqual(document.servers, [{ url: baseUrl }]);
  for (const { path, method, operation } of operationsOf(document)) {
    const bodies = { requestBody: operation.requestBody, ...operation.responses };
    for (const [name, body] of Object.entries(bodies)) {
      const steps = name === 'requestBody' ? [name] : ['responses', name];
      for (const [example, { value }] of Object.entries(body?.content['application/json']?.examples ?? {})) {
        const place = ['paths', path, method, ...steps, 'content', 'application/json', 'schema'];
        t.deepEqual(faults(value, ...place), [], `${method} ${path} ${name} ${example}`);
      }
    }
  }
  for (const [name, { example }] of Object.entries(document.components.headers))
    t.deepEqual(faults(example, 'components', 'headers', name, 'schema'), [], name);
});

test('llms.txt has a line for each operation, and where the document is; it is short', async (t) => {
  const { world, contract } = await withContract(await asNewTenant(shared()));
  const response = await fetch(`${world.url()}/llms.txt`);
  t.is(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  const text = await response.text();
  t.true(text.length < 20_000);
  t.regex(text, /^# Postern\n\n> Send/);
  t.true(text.includes(`(${baseUrl}/api/public/openapi.json)`));
  t.true(text.includes(`curl ${baseUrl}/api/public/email/send`));
  const lines = text.match(/^- `[A-Z]+ \/api.+$/gm) ?? [];
  t.deepEqual(
    lines,
    operationsOf(contract.document).map(
      ({ path, method, operation }) => `- \`${method.toUpperCase()} ${path}\`: ${operation.summary}`,
    ),
  );
});

test('the document needs no key and counts toward no limit', async (t) => {
  const { world, orgId, contract } = await withContract(await asNewTenant(shared()));
  await setLimits(world.db, orgId, { requestsPerSecond: 1, requestsPerDay: 1 });
  for (const authorization of ['', 'Bearer em_wrong', `Bearer ${world.key}`]) {
    const answer = await world.call('GET', '/api/public/openapi.json', { headers: { authorization } });
    t.is(answer.status, 200);
    contract.check(t, 'get', '/api/public/openapi.json', answer);
  }
  t.is((await world.db('daily_usage').where({ org_id: orgId })).length, 0);
  contract.check(t, 'get', '/api/public/openapi.json', await world.call('POST', '/api/public/openapi.json'));
});

test('the document and the server accept and refuse the same requests', async (t) => {
  const { world, contract, post } = await withContract(await asNewTenant(shared()));
  await rename(world, 'example.com');
  const plain = { from: 'billing@example.com', to: 'ann@example.org', subject: 'Hello', text: 'Hello' };
  const many = (count: number) => Array.from({ length: count }, (_, index) => `n${index}@example.org`);
  const pairs = (count: number) => Object.fromEntries(many(count).map((name, index) => [`k${index}`, name]));
  const file = { filename: 'a.txt', content: 'YQ==' };
  const requests: [takes: boolean, fields: object][] = [
    [true, { to: many(1) }],
    [true, { to: many(10) }],
    [false, { to: many(11) }],
    [false, { to: [] }],
    [false, { to: 7 }],
    [false, { from: undefined }],
    [true, { subject: 'x'.repeat(998) }],
    [false, { subject: 'x'.repeat(999) }],
    [false, { subject: '' }],
    [false, { text: undefined }],
    [true, { text: undefined, html: '<p>Hello</p>' }],
    [false, { text: null }],
    [true, { headers: { 'X-One': '1' } }],
    [false, { headers: { 'X-One': 1 } }],
    [true, { tags: pairs(10) }],
    [false, { tags: pairs(11) }],
    [true, { tags: { ['k'.repeat(64)]: 'v'.repeat(256) } }],
    [false, { tags: { ['k'.repeat(65)]: 'v' } }],
    [false, { tags: { k: 'v'.repeat(257) } }],
    [false, { tags: { '': 'v' } }],
    [true, { attachments: [file] }],
    [false, { attachments: [{ filename: 'a.txt' }] }],
    [false, { attachments: [{ ...file, filename: '' }] }],
    [false, { tracking: { openTracking: 'yes' } }],
    [true, { idempotencyKey: 'k'.repeat(255) }],
    [false, { idempotencyKey: 'k'.repeat(256) }],
    [false, { idempotencyKey: '' }],
    [true, { unheard: 'of' }],
  ];
  for (const [takes, fields] of requests) {
    // As it is sent: without members that are undefined.
    const request = JSON.parse(JSON.stringify({ ...plain, ...fields }));
    const name = JSON.stringify(fields).slice(0, 80);
    t.is(
      contract.faults(request, 'components', 'schemas', 'SendRequest').length === 0,
      takes,
      `document: ${name}`,
    );
    const answer = await post(request);
    t.is(answer.status, takes ? 200 : 400, `server: ${name}`);
    contract.check(t, 'post', sendPath, answer);
  }
});

test('the limits that the document names are those of a new organization', async (t) => {
  const { world, contract } = await withContract(await asNewTenant(shared()));
  const id = await insertOrganization(world.db, 'New', Date.now());
  const org = (await findOrganization(world.db, id))!;
  const { description } = contract.document.info;
  const said = (limit: number | null) => limit!.toLocaleString('en');
  t.true(description.includes(`| requests | ${said(org.requestsPerSecond)} per second |`));
  t.true(description.includes(`| requests | ${said(org.requestsPerDay)} per day`));
  t.true(description.includes(`| recipients accepted | ${said(org.emailsPerDay)} per day`));
});

test('generated clients find the members of a send in each of its answers, also in that of a dry run', async (t) => {
  const { contract } = await withContract(await asNewTenant(shared()));
  const { schemas } = contract.document.components as unknown as {
    schemas: Record<string, { anyOf: { $ref: string }[]; required: string[]; properties: object }>;
  };
  const answers = schemas.SendResult!.anyOf.map(({ $ref }) => schemas[$ref.split('/').at(-1)!]!);
  t.is(answers.length, 2);
  for (const { required, properties } of answers) {
    t.deepEqual(required.slice(0, 4), ['success', 'id', 'emailId', 'accepted']);
    t.like(properties, { emailId: { type: 'string', format: 'uuid' } });
  }
});
