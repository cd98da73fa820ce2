/**
 * A DKIM record is right only if verifiers say so. Each case is in the DNS as packets; the judge is mailauth, which verifies a
 * mail signed with the key, in each order of the records (RFC 6376 section 3.6.2.2 leaves the order to chance). Cases as
 * reported to opendkim/OpenDKIM, postalserver/postal and mailcow/mailcow-dockerized.
 */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import test from 'ava';
import { dkimSign, dkimVerify } from 'mailauth';
import { checkRecords } from '#accounts/check-records.ts';
import { dkimRecord, newDkimKey } from '#accounts/domains.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { dkimKey } from '#lab/dkim.ts';
import { startDns } from '#lab/dns/dns.ts';
import { startWorld } from '#lab/scenes/world.ts';

const domain = 'sender.invalid';
const name = `${dkimKey.selector}._domainkey.${domain}`;
const p = dkimKey.publicKey;
const wanted = `v=DKIM1; k=rsa; p=${p}`;
const bare = createPublicKey(dkimKey.privateKey).export({ type: 'pkcs1', format: 'der' }).toString('base64');
/** Another RSA key, in the form for DNS. A room of tests waits for nothing while it is loaded. */
const otherKey = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'der' },
}).publicKey.toString('base64');

const right: Record<string, string> = {
  'as it is published': wanted,
  'only the key': `p=${p}`,
  'no white space': `v=DKIM1;k=rsa;p=${p};`,
  'much white space': ` v = DKIM1 ;\t k =  rsa ; p = ${p.slice(0, 100)} ${p.slice(100)} ; `,
  'the key before its kind': `v=DKIM1; p=${p}; k=rsa`,
  'an unknown tag': `v=DKIM1; k=rsa; g=*; x_note=hello; p=${p}`,
  'a note': `v=DKIM1; n=key=20of=20"2026"; p=${p}`,
  'hashes with ours': `v=DKIM1; h=sha1:sha256; p=${p}`,
  'our hash in white space': `v=DKIM1; h= sha1 : sha256 ; p=${p}`,
  'all services': `v=DKIM1; s=*; p=${p}`,
  'services with email': `v=DKIM1; s=tlsrpt:email; p=${p}`,
  'only the domain itself': `v=DKIM1; t=s; p=${p}`,
  'the key without its wrapping': `v=DKIM1; k=rsa; p=${bare}`,
};

const wrong: Record<string, [records: string[], problem: RegExp]> = {
  'two, ours first': [[wanted, `v=DKIM1; p=${otherKey}`], /2 TXT records .* only one .* Remove the others/],
  'two, ours last': [[`v=DKIM1; p=${otherKey}`, wanted], /2 TXT records/],
  'ours and another text': [[wanted, 'google-site-verification=abc'], /2 TXT records/],
  'ours twice, spelt otherwise': [[wanted, `p=${p}`], /2 TXT records/],
  'three that are not ours': [['a', 'b', 'c'], /3 TXT records .* Remove them and publish/],
  'another selector’s': [[`v=DKIM1; k=rsa; p=${otherKey}`], /a different key, perhaps of another selector/],
  'no key at all': [['v=DKIM1; p=AAAA'], /different key/],
  'an SPF record': [['v=spf1 a:postern.invalid ~all'], /an SPF record; it belongs at the name of the domain/],
  'a DMARC record': [['v=DMARC1; p=none'], /a DMARC record; it belongs at .* _dmarc/],
  'a text': [['hello'], /not a list of tags .*"hello"/],
  revoked: [['v=DKIM1; k=rsa; p='], /revokes the key/],
  'without its key': [['v=DKIM1; k=rsa; n=x'], /has no DKIM key \(p=\)/],
  'cut off': [[wanted.slice(0, 255)], /ends after \d+ of \d+ characters/],
  'in quotation marks': [[`"${wanted}"`], /quotation marks/],
  'split with quotation marks': [[`${wanted.slice(0, 200)}" "${wanted.slice(200)}`], /quotation marks/],
  'with backslashes': [[wanted.replaceAll(';', '\\;')], /backslashes/],
  'another version': [[`v=DKIM2; p=${p}`], /v=DKIM2, which must be exactly DKIM1/],
  'the version in small letters': [[`v=dkim1; p=${p}`], /must be exactly DKIM1/],
  'the version last': [[`k=rsa; p=${p}; v=DKIM1`], /must be the first tag/],
  'the version as DMARC has it': [[`v=DKIM1, k=rsa; p=${p}`], /must be exactly DKIM1/],
  'another kind': [[`v=DKIM1; k=ed25519; p=${p}`], /kind ed25519, and this key is of the kind rsa/],
  'an unknown kind': [[`v=DKIM1; k=dsa; p=${p}`], /kind dsa/],
  'only SHA-1': [[`v=DKIM1; h=sha1; p=${p}`], /h= must list sha256/],
  'an empty list of hashes': [[`v=DKIM1; h=; p=${p}`], /h= must list sha256/],
  'for another service': [[`v=DKIM1; s=tlsrpt; p=${p}`], /s= must list email or \*/],
  'the key twice': [[`v=DKIM1; p=${p}; p=${p}`], /p= twice/],
  'the name of the tag in capitals': [[`v=DKIM1; K=rsa; P=${p}`], /no DKIM key \(p=\)/],
  'two semicolons': [[`v=DKIM1;; k=rsa; p=${p}`], /two semicolons/],
  'a colon for a semicolon': [[`v=DKIM1: k=rsa; p=${p}`], /must be exactly DKIM1/],
  'a tag without a value': [[`v=DKIM1; rsa; p=${p}`], /not a list of tags .*"rsa"/],
  'not Base64': [[`v=DKIM1; p=${p.slice(0, -3)}-_=`], /not Base64/],
  'PEM and all': [[`v=DKIM1; p=-----BEGIN PUBLIC KEY-----${p}-----END PUBLIC KEY-----`], /not Base64/],
  'a space of another kind': [[`v=DKIM1; k=rsa;\u00a0p=${p}`], /not a list of tags|not ASCII/],
  'the name put before it': [[`${name} IN TXT ${wanted}`], /not a list of tags|must be exactly|quotation/],
};

const probe = Buffer.from(
  'From: app@sender.invalid\r\nTo: ann@there.invalid\r\nSubject: probe\r\n\r\nHello\r\n',
);

async function signedProbe(): Promise<string> {
  const { selector, privateKey } = dkimKey;
  const options = { canonicalization: 'relaxed/relaxed', algorithm: 'rsa-sha256' };
  const signatureData = [{ signingDomain: domain, selector, privateKey, ...options }];
  const { signatures } = await dkimSign(probe, { signatureData } as never);
  return signatures + probe.toString();
}

/** Whether mailauth verifies the probe with the records in each order, by the strict reading of the RFC. */
async function verifies(signed: string, records: unknown[]): Promise<boolean> {
  for (let turn = 0; turn < records.length; turn += 1) {
    const ordered = [...records.slice(turn), ...records.slice(0, turn)];
    const options = { resolver: async () => ordered, strict: true };
    const { results } = await dkimVerify(signed, options as never);
    if (results[0]!.status.result !== 'pass') return false;
  }
  return true;
}

test('every record that we call right verifies, and none that does not is called right', async (t) => {
  const dns = await startDns();
  t.teardown(() => dns.close());
  const resolver = new Resolver();
  resolver.setServers([dns.address]);
  const resolve = (asked: string, type = 'TXT') => resolver.resolve(asked, type) as Promise<unknown[]>;
  const signed = await signedProbe();
  const record = {
    type: 'TXT' as const,
    name,
    value: wanted,
    purpose: 'dkim' as const,
    note: '',
    required: true,
  };
  const cases: [string, string[], RegExp | null][] = [
    ...Object.entries(right).map(([what, text]): [string, string[], null] => [what, [text], null]),
    ...Object.entries(wrong).map(([what, [texts, problem]]): [string, string[], RegExp] => [
      what,
      texts,
      problem,
    ]),
  ];
  for (const [what, texts, problem] of cases) {
    dns.set({ [name]: { TXT: texts } });
    const [seen] = await checkRecords([record], resolve);
    t.is(seen!.ok, problem === null, `${what}: ${seen!.problem}`);
    if (problem) t.regex(seen!.problem!, problem, what);
    else t.is(seen!.problem, null, what);
    if (seen!.ok) t.true(await verifies(signed, await resolve(name)), what);
  }
  dns.set({ [name]: { CNAME: ['nothing.invalid'] } });
  t.like((await checkRecords([record], resolve))[0], { ok: false, found: [], problem: null });
  dns.set({ [name]: { CNAME: ['provider.invalid'] }, 'provider.invalid': { TXT: [wanted] } });
  t.like((await checkRecords([record], resolve))[0], { ok: true, problem: null });
});

test('an Ed25519 key needs its kind and its bare bytes', async (t) => {
  const ed25519 = await newDkimKey('ed25519');
  const key = {
    ...ed25519,
    id: '',
    algorithm: 'ed25519',
    status: 'pending',
    keepUntil: null,
    createdAt: 0,
    checkedAt: null,
  };
  const record = dkimRecord(domain, key as never);
  const judged = async (text: string) => (await checkRecords([record], async () => [[text]]))[0]!;
  t.like(await judged(record.value), { ok: true, problem: null });
  t.regex(
    (await judged(`v=DKIM1; p=${ed25519.publicKey}`)).problem!,
    /kind rsa, and this key is of the kind ed25519/,
  );
  const der = `MCowBQYDK2VwAyEA${ed25519.publicKey}`;
  t.false((await judged(`v=DKIM1; k=ed25519; p=${der}`)).ok);
});

test('of DMARC records, too, there may be one', async (t) => {
  const records = [
    { type: 'TXT', name: `_dmarc.${domain}`, value: 'v=DMARC1; p=none', purpose: 'dmarc' },
  ].map((record) => ({ ...record, note: '', required: false }));
  const judged = async (...texts: string[]) =>
    (await checkRecords(records as never, async () => texts.map((text) => [text]))).map(
      ({ ok, problem }) => problem ?? ok,
    );
  t.is((await judged('v=DMARC1;p=reject', 'other'))[0], true);
  t.regex(String((await judged('v=DMARC1; p=none', 'v=DMARC1; p=reject'))[0]), /2 DMARC records/);
  t.regex(String((await judged('v=DMARC10'))[0]), /does not begin with v=DMARC1/);
});

test('API, command line, dashboard and Postmark’s API name the fault, and a key that waits does not sign', async (t) => {
  const world = await startWorld(t);
  const { cli, json } = cliOf(t, world);
  const verify = async () => (await world.call('POST', `/api/public/domains/${domain}/verify`)).body;
  world.dns.set({ [name]: { TXT: [`v=DKIM1; t=y; p=${p}`] } });
  const testing = await verify();
  t.is(testing.domain.status, 'verified');
  t.like(testing.records[0], { ok: true });
  t.regex(testing.records[0].problem, /t=y \(testing\)/);

  world.dns.set({ [name]: { TXT: [wanted, `v=DKIM1; p=${otherKey}`] } });
  const twice = await verify();
  t.is(twice.domain.status, 'verified', 'a question takes nothing away');
  t.like(twice.records[0], { ok: false });
  t.regex(twice.records[0].problem, /2 TXT records at this name, but only one is allowed/);
  const shown = await cli(`domain verify ${domain} --org Tenant`);
  t.is(shown.code, 1);
  t.regex(shown.stdout.toString(), /2 TXT records at this name/);
  const browser = createBrowser(world);
  await setUp(browser, world);
  t.regex(
    (await browser.get(`/dashboard/o/${world.orgId}/domains/${domain}/records`)).text,
    /2 TXT records at this name/,
  );
  const headers = { 'x-postmark-account-token': world.key, accept: 'application/json' };
  const list = (await (await fetch(`${world.url()}/domains?count=5&offset=0`, { headers })).json()) as {
    Domains: { ID: number }[];
  };
  const postmark = `${world.url()}/domains/${list.Domains[0]!.ID}/verifyDkim`;
  // A question takes nothing away; the record that is missing stands beside it, as pending.
  const asked = await (await fetch(postmark, { method: 'PUT', headers })).json();
  t.like(asked, { DKIMVerified: true, DKIMPendingHost: name });

  world.dns.set({ [name]: { TXT: [wanted] } });
  t.is((await verify()).domain.status, 'verified');
  await json(`domain rotate ${domain} --org Tenant`);
  const key = async () =>
    (await world.db('dkim_keys').orderBy('created_at', 'desc').first()) as {
      selector: string;
      public_key: string;
    };
  const { selector, public_key } = await key();
  const next = `${selector}._domainkey.${domain}`;
  const statuses = async () => (await verify()).domain.keys.map(({ status }: { status: string }) => status);
  world.dns.set({ [next]: { TXT: [`v=DKIM1; h=sha1; p=${public_key}`] } });
  t.deepEqual(await statuses(), ['signing', 'pending']);
  world.dns.set({ [next]: { TXT: [`v=DKIM1; p=${public_key}`] } });
  t.deepEqual(await statuses(), ['signing', 'retired']);
});
