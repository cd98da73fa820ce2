/** What a recipient's domain publishes on TLS (DANE, MTA-STS) is what its mail is given to, or nobody. */
import test, { type ExecutionContext } from 'ava';
import type { Zone } from '#lab/dns/dns.ts';
import { type MxOptions, mxPem } from '#lab/mx/mx.ts';
import { authorizedPem, policy, startPolicyHost, tlsaOf, trustAuthority } from '#lab/mx/policy-host.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

trustAuthority();

/** there.invalid with signed records, whose hosts have the TLSA records given; 'SERVFAIL' for forged ones. */
async function startSigned(t: ExecutionContext, tlsa: string[], exchangers: MxOptions[] = [{}]) {
  const world = await startWorld(t, { exchangers });
  const { port } = world.mx[0]!;
  const names = tlsa.map((_, at) => `mx${at + 1}.invalid`);
  const zone: Zone = {
    'there.invalid': { MX: names.map((name, at) => `${at + 1}0 ${name}`), secure: true },
  };
  for (const [at, name] of names.entries()) {
    zone[name] = { A: [world.mx[at]!.host], secure: true };
    zone[`_${port}._tcp.${name}`] =
      tlsa[at] === 'SERVFAIL' ? 'SERVFAIL' : { TLSA: [tlsa[at]!], secure: true };
  }
  world.dns.set(zone);
  return world;
}

type World = Awaited<ReturnType<typeof startWorld>>;

/** Sends one mail and waits for the end of its first attempt. */
async function attempt({ send, when }: World) {
  const { body } = await send({ to: 'ann@there.invalid' });
  const email = await when(body.emailId, ({ status }) => !['queued', 'sending'].includes(status));
  return { ...email.recipients[0], why: email.events.at(-1).data.diagnostic };
}

/** Nothing of the mail was said to that host, its sender neither. */
const heardNothing = (world: World, at = 0) =>
  world.mx[at]!.sessions.every(({ commands }) => !commands.some((line) => /^(MAIL|RCPT|DATA)/i.test(line)));

test('DANE: the certificate that the TLSA records name gets the mail, whoever signed it', async (t) => {
  const world = await startSigned(t, [tlsaOf(mxPem)]);
  const { status, tls } = await attempt(world);
  t.is(status, 'delivered');
  t.like(tls, { policy: 'dane', verified: true });
});

test('DANE: another certificate gets nothing, and the reason says why', async (t) => {
  const world = await startSigned(t, [tlsaOf(authorizedPem)]);
  const { status, why } = await attempt(world);
  t.is(status, 'deferred');
  t.regex(why, /mx1\.invalid .*certificate matches no TLSA record/);
  t.true(heardNothing(world));
});

test('DANE: a host without STARTTLS gets nothing', async (t) => {
  const world = await startSigned(t, [tlsaOf(mxPem)], [{ tls: false }]);
  const { status, why } = await attempt(world);
  t.is(status, 'deferred');
  t.regex(why, /STARTTLS/);
  t.true(heardNothing(world));
});

test('DANE: a host whose TLSA records cannot be looked up is passed over for the next', async (t) => {
  const world = await startSigned(t, ['SERVFAIL', tlsaOf(mxPem)], [{}, {}]);
  const { status, tls, mx } = await attempt(world);
  t.is(status, 'delivered');
  t.like(tls, { policy: 'dane', verified: true });
  t.is(mx.host, 'mx2.invalid');
  t.deepEqual(world.mx[0]!.sessions, []);
});

test('DANE: where there is no other host the mail waits', async (t) => {
  const world = await startSigned(t, ['SERVFAIL']);
  const { status, why } = await attempt(world);
  t.is(status, 'deferred');
  t.regex(why, /TLSA records of mx1\.invalid could not be looked up/);
});

/** there.invalid with an MTA-STS policy, its host mx1.invalid with a certificate of a known authority or not. */
async function startSts(t: ExecutionContext, text: string, exchanger: MxOptions = {}) {
  const policyHost = await startPolicyHost({ 'there.invalid': text });
  t.teardown(policyHost.close);
  return startWorld(t, {
    exchangers: [exchanger],
    overrides: { policyPort: policyHost.port, policyTimeoutMs: 300_000 },
    zone: {
      '_mta-sts.there.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.there.invalid': { A: [policyHost.host] },
    },
  });
}

test('MTA-STS: a host of the policy with a certificate of a known authority gets the mail', async (t) => {
  const world = await startSts(t, policy('enforce', ['mx1.invalid']), { pem: authorizedPem });
  const { status, tls } = await attempt(world);
  t.is(status, 'delivered');
  t.like(tls, { policy: 'mta-sts', verified: true });
});

test('MTA-STS: a host whose certificate nobody vouches for gets nothing, and the reason says why', async (t) => {
  const world = await startSts(t, policy('enforce', ['mx1.invalid']));
  const { status, why } = await attempt(world);
  t.is(status, 'deferred');
  t.regex(why, /mx1\.invalid .*certificate/);
  t.true(heardNothing(world));
});

test('MTA-STS: a host that is not in the policy is not even called', async (t) => {
  const world = await startSts(t, policy('enforce', ['mx2.invalid']), { pem: authorizedPem });
  const { status, why } = await attempt(world);
  t.is(status, 'deferred');
  t.regex(why, /mx1\.invalid is not among the hosts of the domain's MTA-STS policy/);
  t.deepEqual(world.mx[0]!.sessions, []);
});

test('MTA-STS: a policy in testing mode holds nothing back, and the attempt tells of it', async (t) => {
  const world = await startSts(t, policy('testing', ['mx2.invalid']));
  const { status, tls } = await attempt(world);
  t.is(status, 'delivered');
  t.like(tls, { policy: 'opportunistic', verified: false });
});

test('MTA-STS: a policy that one node has fetched protects the mail of another that cannot get it', async (t) => {
  const policyHost = await startPolicyHost({ 'there.invalid': policy('enforce', ['mx1.invalid']) });
  t.teardown(policyHost.close);
  const overrides = { policyPort: policyHost.port, policyTimeoutMs: 300_000 };
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    overrides,
    zone: {
      '_mta-sts.there.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.there.invalid': { A: [policyHost.host] },
    },
  });
  await attempt(world);
  t.deepEqual(policyHost.asked, ['there.invalid']);
  t.like((await world.db('learned').where({ kind: 'mta-sts' }).first())!, { name: 'there.invalid' });
  await world.stop();
  // From here on an attacker keeps the record from us (RFC 8461 section 10.1).
  world.dns.set({ '_mta-sts.there.invalid': 'SERVFAIL' });
  const other = await startNode(t, world);
  const before = world.mx[0]!.sessions.length;
  const { emailId } = (await world.at(other.url).send({ to: 'bob@there.invalid' })).body;
  const row = await until(
    () => world.db('deliveries').where({ email_id: emailId, status: 'deferred' }).first(),
    { what: 'the end of its first attempt' },
  );
  t.is(row.attempts, 1);
  t.true(world.mx[0]!.sessions.length > before, 'it was talked to');
  t.true(heardNothing(world), 'and told nothing, for its certificate is nobody’s');
});
