/** Accounts: the seal on private keys, API keys and their scopes, the DNS records of a sender domain. */
import { createHash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { allowedDomains, findCaller, mayDo, newKey, parseScopes } from '#accounts/api-keys.ts';
import { checkRecords, statusAfter } from '#accounts/check-records.ts';
import { type DnsRecord, newDkimKey, type RecordPurpose, recordsFor } from '#accounts/domains.ts';
import type { KeyInUse } from '#accounts/rows/keys.ts';
import { createSeal } from '#accounts/seal.ts';
import { dkimKey } from '#lab/dkim.ts';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { table } from '#lab/table.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';

// The seal.

const seal = createSeal(fixedSecrets('a secret of this test'));
const privateKey = '-----BEGIN PRIVATE KEY-----\nMIIE ünïcode\n-----END PRIVATE KEY-----\n';

test('a sealed text opens with the same secret only', (t) => {
  const sealed = seal.close(privateKey);
  t.is(seal.open(sealed), privateKey);
  t.is(createSeal(fixedSecrets('a secret of this test')).open(sealed), privateKey);
  t.throws(() => createSeal(fixedSecrets('another secret')).open(sealed), {
    message: /another POSTERN_SECRET/,
  });
  t.is(seal.open(seal.close('')), '');
});

test('a sealed text shows nothing of its content, nor that two are the same', (t) => {
  const sealed = seal.close(privateKey);
  t.not(sealed, seal.close(privateKey));
  t.notRegex(Buffer.from(sealed.split('.').at(-1)!, 'base64url').toString('latin1'), /PRIVATE|MIIE/);
});

/** The sealed text with one bit of a part turned over. */
function turned(sealed: string, part: number): string {
  const parts = sealed.split('.');
  const bytes = Buffer.from(parts[part]!, 'base64url');
  bytes[0]! ^= 1;
  return parts.with(part, bytes.toString('base64url')).join('.');
}

test('a sealed text that was changed does not open', (t) => {
  const sealed = seal.close(privateKey);
  const [version, nonce, tag, text] = sealed.split('.');
  const changed: Record<string, string> = {
    'another nonce': turned(sealed, 1),
    'another tag': turned(sealed, 2),
    'another text': turned(sealed, 3),
    'a cut text': sealed.slice(0, -4),
    'no text': [version, nonce, tag, ''].join('.'),
    'a tag of four bytes': [version, nonce, tag!.slice(0, 6), text].join('.'),
    'a cut nonce': [version, nonce!.slice(0, 8), tag, text].join('.'),
    'another version': `v2${sealed.slice(2)}`,
    'parts missing': [version, nonce, tag].join('.'),
    nothing: '',
    'the key itself': privateKey,
  };
  for (const [what, wrong] of Object.entries(changed)) t.throws(() => seal.open(wrong), undefined, what);
});

// API keys.

const limits = { perSecond: 2, perDay: 5000 };
const scopesOf = (...scopes: string[]) => ({
  keyId: 'k',
  keyLabel: 'app',
  orgId: 'o',
  scopes,
  limits,
  strict: false,
  isTest: false,
  pause: null,
});

function keeper(...records: Partial<KeyInUse>[]) {
  const asked: string[] = [];
  const find = async (hash: string) => {
    asked.push(hash);
    return (records.find((record) => record.hash === hash) as KeyInUse) ?? null;
  };
  return { asked, find };
}

test('a key is em_ and 256 bits at random; its SHA-256 is what is kept', (t) => {
  const { key, hash, hint } = newKey();
  t.regex(key, /^em_[\w-]{43}$/);
  t.is(hash, createHash('sha256').update(key).digest('hex'));
  t.true(key.startsWith(hint) && hint.length < 12, 'the hint gives little of it away');
  t.not(newKey().key, key);
});

test('a key names its caller', async (t) => {
  const { key, hash } = newKey();
  const always = { revokedAt: null, endsAt: null, limits, strict: false, isTest: false, pause: null };
  const record = { id: 'k', label: 'app', orgId: 'o', hash, scopes: ['email:send'], ...always };
  t.deepEqual(await findCaller(key, keeper(record).find, 1), scopesOf('email:send'));
  t.is(await findCaller(newKey().key, keeper(record).find, 1), null, 'an unknown one does not');
  t.is(await findCaller(key, keeper({ ...record, revokedAt: 2 }).find, 1), null, 'a revoked one does not');
  const ended = keeper({ ...record, endsAt: 1 }).find;
  t.is(await findCaller(key, ended, 1), null, 'nor one that has ended');
  t.deepEqual(await findCaller(key, ended, 0), scopesOf('email:send'), 'one whose end is to come does');
});

test('a text that cannot be an API key is not looked up', async (t) => {
  const { asked, find } = keeper();
  const random = newKey().key.slice(3);
  const wrong = ['', 'em_', 'em_short', random, `EM_${random}`, `sk_${random}`, `em_${random}\n`];
  for (const key of [...wrong, `em_${random} x`, `em_${random}é`, `em_${'a'.repeat(201)}`]) {
    t.is(await findCaller(key, find, 1), null, key);
  }
  t.deepEqual(asked, []);
});

test('a key may do what its scopes say; full_access is all; a domain_scope grants nothing', (t) => {
  t.true(mayDo(scopesOf('email:send'), 'email:send'));
  t.false(mayDo(scopesOf('email:send'), 'email:read'));
  t.true(mayDo(scopesOf('full_access'), 'email:send') && mayDo(scopesOf('full_access'), 'email:read'));
  t.false(mayDo(scopesOf('domain_scope:a.invalid'), 'email:send'));
  t.false(mayDo(scopesOf(), 'email:send'));
  const pause = { since: 0, reason: 'unpaid bills' };
  t.false(mayDo({ ...scopesOf('full_access'), pause }, 'email:send'), 'of a paused organization: nothing');
});

test('domain_scopes restrict every key that has one', (t) => {
  t.deepEqual(allowedDomains(scopesOf('full_access', 'domain_scope:a.invalid', 'domain_scope:b.invalid')), [
    'a.invalid',
    'b.invalid',
  ]);
  t.deepEqual(allowedDomains(scopesOf('full_access')), []);
});

test('scopes are read in any order, each once, domains as A-labels', (t) => {
  t.deepEqual(parseScopes(['email:read', 'domain_scope:BÜCHER.invalid', 'email:send', 'email:read']), [
    'email:read',
    'domain_scope:xn--bcher-kva.invalid',
    'email:send',
  ]);
});

for (const scope of [
  'email',
  'Email:Send',
  'email:send ',
  'admin',
  '',
  'domain_scope',
  'domain_scope:',
  'domain_scope:localhost',
  'domain_scope:*.a.invalid',
  'domain_scope:a@b.invalid',
]) {
  test(`"${scope}" is no scope, and is named`, (t) => {
    const parsed = parseScopes(['email:send', scope]);
    t.true('problem' in parsed && parsed.problem.includes(scope));
  });
}

// The records of a domain.

const names = { hostname: 'postern.invalid', returnPathDomain: 'bounce.invalid' };
const published = dkimKey.publicKey;
const domain = { name: 'sender.invalid', dkimSelector: 'pstn1', dkimPublicKey: published };
const dkimName = 'pstn1._domainkey.sender.invalid';

test('a new DKIM key is a pair of RSA-2048, its public half as DNS wants it', async (t) => {
  const { selector, publicKey } = await newDkimKey();
  t.regex(selector, /^pstn[0-9a-f]{8}$/);
  t.regex(publicKey, /^MIIBIjANBgkqhkiG9w0BAQEF[A-Za-z0-9+/]+IDAQAB$/);
});

test('a domain is asked for three records, of which DKIM decides', (t) => {
  const brief = recordsFor(domain, names).map(({ type, name, value, purpose, required }) =>
    [type, name, value, purpose, required ? 'required' : 'advice'].join(' '),
  );
  t.deepEqual(brief, [
    `TXT ${dkimName} v=DKIM1; k=rsa; p=${published} dkim required`,
    'CNAME bounces.sender.invalid bounce.invalid return_path advice',
    'TXT _dmarc.sender.invalid v=DMARC1; p=none dmarc advice',
  ]);
});

test('where mail comes in, DMARC reports are asked for, and the leave to send them there', (t) => {
  const records = recordsFor(domain, { ...names, inboundPort: 25 }).slice(2);
  t.deepEqual(
    records.map(({ name, value }) => `${name} ${value}`),
    [
      '_dmarc.sender.invalid v=DMARC1; p=none; rua=mailto:dmarc@bounce.invalid',
      'sender.invalid._report._dmarc.bounce.invalid v=DMARC1',
    ],
  );
});

async function check(t: ExecutionContext, zone: Zone) {
  const dns = await startDns(zone);
  t.teardown(() => dns.close());
  return checkRecords(recordsFor(domain, names), createResolver([dns.address]));
}

const txt = (...values: string[]) => ({ TXT: values });
const key = `p=${published}`;

type Look = [RecordPurpose, what: string, zone: Zone, ok: boolean];

const withKey = (zone: Zone): Zone => JSON.parse(JSON.stringify(zone).replaceAll('$KEY', published));

const looks: Look[] = [
  ...table<Look>('accounts/domain-records').map(
    ([purpose, what, zone, ok]): Look => [purpose, what, withKey(zone), ok],
  ),
  [
    'dkim',
    'white space',
    { [dkimName]: txt(`v=DKIM1 ;\tp = ${published.replace(/(.{60})/g, '$1 \t')} ; `) },
    true,
  ],
  ['dkim', 'another key', { [dkimName]: txt(`v=DKIM1; p=${published.slice(0, -4)}AAAA`) }, false],
  ['dkim', 'a key cut short', { [dkimName]: txt(`v=DKIM1; p=${published.slice(0, 200)}`) }, false],
  ['dkim', 'a key in small letters', { [dkimName]: txt(`v=DKIM1; p=${published.toLowerCase()}`) }, false],
];

for (const [purpose, what, zone, ok] of looks) {
  test(`${purpose}: ${what} is ${ok ? 'good' : 'not good'}`, async (t) => {
    const records = await check(t, zone);
    const looked = records.find((record) => record.purpose === purpose)!;
    t.is(looked.ok, ok);
    t.true(looked.found.length > 0, 'what is there is shown');
    t.true(looked.found.every((value) => typeof value === 'string'));
  });
}

test('a record that is not there is not found, be it a name without data or no name', async (t) => {
  const noData = await check(t, { [dkimName]: { A: ['127.0.0.1'] } });
  t.like(noData[0], { ok: false, found: [] });
  const noName = await check(t, {});
  for (const { ok, found } of noName) t.deepEqual({ ok, found }, { ok: false, found: [] });
  t.is(statusAfter(noName), 'pending');
});

test('where DNS gives no answer the reason is found, and the domain stays what it was', async (t) => {
  for (const failure of ['SERVFAIL', 'REFUSED'] as const) {
    const records = await check(t, { [dkimName]: failure });
    t.like(records[0], { ok: false, found: [`look-up failed: E${failure}`] });
    t.is(statusAfter(records), null);
  }
});

test('a domain is verified by its DKIM record alone', async (t) => {
  const dkim = { [dkimName]: txt(`v=DKIM1; ${key}`) };
  t.is(statusAfter(await check(t, dkim)), 'verified');
  t.is(statusAfter(await check(t, { ...dkim, 'sender.invalid': 'SERVFAIL' })), 'verified');
  const others: DnsRecord[] = recordsFor(domain, names).filter(({ required }) => !required);
  const zone = Object.fromEntries(others.map(({ name, type, value }) => [name, { [type]: [value] }]));
  const records = await check(t, zone);
  t.deepEqual(
    records.map(({ ok }) => ok),
    [false, true, true],
  );
  t.is(statusAfter(records), 'pending');
});
