import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';

test('the second exchanger takes the mail when the first is down', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: { 'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] } },
  });
  await world.mx[0]!.close();
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const [message] = await world.mx[1]!.received(1);
  t.deepEqual(message!.to, ['ann@there.invalid']);
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 1, 'one attempt spans all hosts');
  t.is(email.recipients[0].mx.host, 'mx2.invalid');
});

test('exchangers are tried in the order of their preference', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: { 'there.invalid': { MX: ['20 mx1.invalid', '10 mx2.invalid'] } },
  });
  await world.send({ to: 'ann@there.invalid' });
  await world.mx[1]!.received(1);
  t.is(world.mx[0]!.sessions.length, 0);
});

test('a 4xx at RCPT goes on to the next host, a 5xx does not', async (t) => {
  const world = await startWorld(t, {
    exchangers: [
      { script: { rcpt: ({ address }) => (address?.startsWith('busy') ? '450 4.2.0 busy' : undefined) } },
      {},
    ],
    zone: { 'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] } },
  });
  const busy = await world.send({ to: 'busy@there.invalid' });
  const unknown = await world.send({ to: 'unknown@there.invalid' });
  await world.when(busy.body.emailId, ({ status }) => status === 'delivered');
  await world.when(unknown.body.emailId, ({ status }) => status === 'bounced');
  t.deepEqual(
    world.mx[1]!.messages.map(({ to }) => to[0]),
    ['busy@there.invalid'],
  );
});

test('a domain without MX is delivered to its own address', async (t) => {
  const world = await startWorld(t, { zone: { 'bare.invalid': { A: ['127.0.0.2'] } } });
  const { body } = await world.send({ to: 'ann@bare.invalid' });
  await world.mx[0]!.received(1);
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].mx.host, 'bare.invalid');
});

test('a null MX bounces at once, and nobody is called', async (t) => {
  const world = await startWorld(t, { zone: { 'nomail.invalid': { MX: ['0 .'], A: ['127.0.0.2'] } } });
  const { body } = await world.send({ to: 'ann@nomail.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'bounced');
  const { type, category, fault, diagnostic } = email.recipients[0].bounce;
  t.deepEqual({ type, category, fault }, { type: 'hard', category: 'dns', fault: 'recipient' });
  t.regex(diagnostic, /null MX/);
  t.is(world.mx[0]!.sessions.length, 0);
});

test('a domain that does not exist bounces hard', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'ann@nowhere.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'bounced');
  t.is(email.recipients[0].bounce.type, 'hard');
  t.is(email.recipients[0].bounce.category, 'dns');
});

for (const failure of ['SERVFAIL', 'REFUSED'] as const) {
  test(`a DNS ${failure} defers and never bounces; the mail arrives when DNS does`, async (t) => {
    const world = await startWorld(t, { zone: { 'broken.invalid': failure } });
    const { body } = await world.send({ to: 'ann@broken.invalid' });
    const email = await world.when(body.emailId, ({ status }) => status === 'deferred');
    const deferral = email.events.find(({ type }: { type: string }) => type === 'email.deferred');
    t.is(deferral.data.category, 'dns');
    world.dns.set({ 'broken.invalid': { MX: ['10 mx1.invalid'] } });
    await world.clock.advance('30s');
    await world.passUntil(body.emailId, ({ status }) => status === 'delivered');
  });
}

test('MX hosts without any address defer: their names may be a mistake of the hour', async (t) => {
  const world = await startWorld(t, { zone: { 'astray.invalid': { MX: ['10 gone.invalid'] } } });
  const { body } = await world.send({ to: 'ann@astray.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'deferred');
  t.is(email.recipients[0].attempts, 1);
});

test('a private MX is refused by default, and nobody is called', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_ALLOW_PRIVATE: 'false' } });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'deferred');
  const deferral = email.events.find(({ type }: { type: string }) => type === 'email.deferred');
  t.is(deferral.data.category, 'policy');
  t.is(deferral.data.origin, 'local');
  t.is(world.mx[0]!.sessions.length, 0);
});

test('an IDN domain is looked up and addressed by its A-label', async (t) => {
  const world = await startWorld(t, { zone: { 'xn--bcher-kva.invalid': { MX: ['10 mx1.invalid'] } } });
  const { body } = await world.send({ to: 'Ann@Bücher.invalid' });
  t.deepEqual(body.accepted, ['Ann@Bücher.invalid']);
  const [message] = await world.mx[0]!.received(1);
  t.deepEqual(message!.to, ['Ann@xn--bcher-kva.invalid']);
});
