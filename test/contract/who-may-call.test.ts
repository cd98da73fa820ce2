/** docs/api.md, section 5: keys, scopes, and who is refused. */
import test from 'ava';
import { table } from '#lab/table.ts';
import { isError, isSent } from './answer.ts';
import {
  type Call,
  elsewhere,
  emailPath,
  nobodysId,
  openTenant,
  sharedWorld,
  type Tenant,
} from './client.ts';

let tenant: Tenant;
sharedWorld(async (made) => {
  tenant = await openTenant(made);
  await tenant.addDomain('other.invalid');
});

/** Both operations, with an Authorization of the test's choice. */
const both = (authorization: string | null) => {
  const options: Call = { headers: { authorization }, from: elsewhere() };
  return [tenant.send({}, options), tenant.call('GET', emailPath(nobodysId), options)];
};

// The table of scopes: what each allows.

type Outcome = 'allowed' | 'FORBIDDEN' | 'DOMAIN_NOT_ALLOWED';
const scopes: [granted: string[], send: Outcome, sendOther: Outcome, get: Outcome][] =
  table('contract/scopes');

for (const [granted, send, sendOther, get] of scopes) {
  test(`5 scopes: ${granted.join(' and ')}: sending ${send}, from other.invalid ${sendOther}, reading ${get}`, async (t) => {
    const key = await tenant.addKey(...granted);
    const { emailId } = (await tenant.send()).body;
    const [own, other] = [await key.send(), await key.send({ from: 'app@other.invalid' })];
    for (const [answer, outcome] of [
      [own, send],
      [other, sendOther],
    ] as const) {
      if (outcome === 'allowed') isSent(t, answer);
      else isError(t, answer, `403 ${outcome}`);
      if (outcome === 'FORBIDDEN') t.regex(answer.body.message, /email:send/, 'the message names the scope');
    }
    const read = await key.get(emailId);
    if (get === 'allowed') t.is(read.body.emailId, emailId);
    else isError(t, read, '403 FORBIDDEN');
    if (get !== 'allowed') t.regex(read.body.message, /email:read/);
  });
}

// Rules.

const wrong = (key: string): Record<string, string | null> => ({
  none: null,
  'nothing in it': '',
  'no key': 'Bearer',
  'no key after a blank': 'Bearer ',
  'of nobody': `Bearer em_${'A'.repeat(key.length - 3)}`,
  'no scheme': key,
  'another scheme': `Basic ${key}`,
  'no prefix': `Bearer ${key.slice(3)}`,
  'another prefix': `Bearer sk_${key.slice(3)}`,
  'the prefix alone': 'Bearer em_',
  'cut short': `Bearer ${key.slice(0, -1)}`,
  'one character more': `Bearer ${key}A`,
  'another word after it': `Bearer ${key} x`,
  'in capitals': `Bearer ${key.toUpperCase()}`,
  'two in a list': `Bearer ${key}, Bearer ${key}`,
});

test('5 a missing, malformed or unknown key: 401 UNAUTHORIZED', async (t) => {
  for (const [what, authorization] of Object.entries(wrong(tenant.key!)))
    for (const answer of both(authorization)) isError(t, await answer, '401 UNAUTHORIZED', what);
});

test('5 the scheme is Bearer in any letter case (RFC 9110)', async (t) => {
  for (const scheme of ['bearer', 'BEARER'])
    isSent(t, await tenant.send({}, { headers: { authorization: `${scheme} ${tenant.key}` } }));
});

test('5 a 401 says how to authenticate (RFC 9110): WWW-Authenticate: Bearer', async (t) => {
  for (const answer of both(null)) t.regex((await answer).headers.get('www-authenticate') ?? '', /^Bearer\b/);
});

test('5 key has a domain_scope and the from address belongs to another domain: 403 DOMAIN_NOT_ALLOWED; the message names the rejected domain and the allowed domains', async (t) => {
  const key = await tenant.addKey('email:send', 'domain_scope:one.invalid', 'domain_scope:two.invalid');
  for (const from of ['app@sender.invalid', 'App <app@sender.invalid>']) {
    const answer = await key.send({ from });
    isError(t, answer, '403 DOMAIN_NOT_ALLOWED');
    for (const domain of ['sender.invalid', 'one.invalid', 'two.invalid'])
      t.true(answer.body.message.includes(domain), domain);
  }
  t.regex((await key.send({ from: 'a@Bücher.invalid' })).body.message, /xn--bcher-kva\.invalid/);
});

test('5 domain_scope:<domain> is that domain alone: no subdomain, no parent, no other ending alike', async (t) => {
  const key = await tenant.addKey('email:send', 'domain_scope:other.invalid');
  for (const domain of [
    'sub.other.invalid',
    'another.invalid',
    'other.invalid.evil.invalid',
    'invalid.invalid',
  ])
    isError(t, await key.send({ from: `app@${domain}` }), '403 DOMAIN_NOT_ALLOWED', domain);
  isSent(t, await key.send({ from: 'App <APP@Other.Invalid>' }), undefined, 'letter case is nothing');
});
