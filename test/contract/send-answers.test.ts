/** docs/api.md, sections 2.4 to 2.7: what the calls answer, the API key, the stored email record. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { hasHeaders, isInvalid, isSent, uuidForm } from './answer.ts';
import { client, openTenant, people, sharedWorld, type Tenant } from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

// 2.4 Send response.

/** A partial success: the lists given, in their order, and no other member. */
const partial = [
  { suppressed: true, insufficientCredit: false },
  { suppressed: false, insufficientCredit: true },
  { suppressed: true, insufficientCredit: true },
];

for (const lists of partial) {
  const names = Object.entries(lists).flatMap(([name, there]) => (there ? [name] : []));
  test(`2.4 partial success: 200 with ${names.join(' and ')}, the recipients that were skipped`, async (t) => {
    const own = await openTenant(world(), { quota: lists.insufficientCredit ? 2 : null });
    const to = people(6);
    if (lists.suppressed) await own.suppress(to[0]!, to[3]!);
    const answer = await own.send({ to });
    const suppressed = lists.suppressed ? [to[0], to[3]] : [];
    const rest = to.filter((recipient) => !suppressed.includes(recipient));
    const accepted = lists.insufficientCredit ? rest.slice(0, 2) : rest;
    const insufficientCredit = rest.slice(accepted.length);
    const { id, emailId, ...told } = answer.body;
    t.is(answer.status, 200);
    t.deepEqual(told, {
      success: true,
      accepted,
      ...(lists.suppressed && { suppressed }),
      ...(lists.insufficientCredit && { insufficientCredit }),
    });
    t.true(typeof id === 'string' && uuidForm.test(emailId));
    hasHeaders(t, answer);
  });
}

// 2.5 Error body.

/** JSON value, its type by name. */
const values: [unknown, string][] = [
  [5, 'number'],
  [true, 'boolean'],
  [null, 'null'],
  [{}, 'object'],
  [[], 'array'],
  [undefined, 'undefined'],
];

test('2.5 issues: a type mismatch has its code, the type expected and the type received', async (t) => {
  const codes = new Set<string>();
  for (const [value, received] of values) {
    const answer = await tenant.send({ subject: value });
    isInvalid(t, answer, ['subject'], received);
    const [{ code, ...issue }] = answer.body.issues;
    t.like(issue, { expected: 'string', received }, received);
    codes.add(code);
  }
  t.is(codes.size, 1, [...codes].join());
});

// 2.6 API key.

test('2.6 API key: em_ and a high-entropy string; a label, scopes, optionally domain restrictions; displayed once', async (t) => {
  const { json } = cliOf(t, world());
  const create = `key create --org ${tenant.orgId} --scope email:send`;
  const made = await json(create, '--label', 'web shop', '--domain', 'sender.invalid');
  const other = await json(create, '--label', 'other');
  t.regex(made.key, /^em_[\w-]{22,}$/, '128 bits at least');
  t.not(made.key, other.key);
  t.deepEqual(made.scopes, ['email:send', 'domain_scope:sender.invalid']);
  t.deepEqual(other.scopes, ['email:send']);
  const listed = await json(`key list --org ${tenant.orgId}`);
  t.true(listed.some(({ id, label }: Record<string, string>) => id === made.id && label === 'web shop'));
  t.false(JSON.stringify(listed).includes(made.key));
  isSent(t, await client(world(), made.key).send());
});
