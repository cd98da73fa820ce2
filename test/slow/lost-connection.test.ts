import test from 'ava';
import { startWorld, type World } from '../lab/scenes/world.ts';

const deferral = (email: { events: { type: string; data: Record<string, unknown> }[] }) =>
  email.events.find(({ type }) => type === 'email.deferred')!.data;

async function deferredBy(world: World, to: string) {
  const { body } = await world.send({ to });
  return world.when(body.emailId, ({ status }) => status === 'deferred');
}

test('a connection lost in DATA is a deferral', async (t) => {
  const world = await startWorld(t);
  const email = await deferredBy(world, 'drop-in-data@there.invalid');
  t.is(deferral(email).category, 'network');
  t.is(email.recipients[0].bounce, null);
});

test('a connection lost after the final dot is a deferral that owns up to a possible duplicate', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: { 'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] } },
  });
  const email = await deferredBy(world, 'drop-after-dot@there.invalid');
  t.true(deferral(email).possibleDuplicate);
  t.is(world.mx[1]!.sessions.length, 0, 'the next host is not given a copy at once');
});

test('a connection lost before DATA cannot have been a delivery', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { rcpt: () => 'close' } }] });
  t.false(deferral(await deferredBy(world, 'ann@there.invalid')).possibleDuplicate);
});

test('a host that never replies is given up, and another one tried', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => 'hang' } }, {}],
    zone: { 'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] } },
    settings: { POSTERN_MTA_TIMEOUTS: 'greeting=3s' },
  });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[1]!.messages.length, 1);
});

test('silence after the final dot is a deferral that owns up to a possible duplicate', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { dot: () => 'hang' } }],
    settings: { POSTERN_MTA_TIMEOUTS: 'dot=200ms' },
  });
  t.true(deferral(await deferredBy(world, 'ann@there.invalid')).possibleDuplicate);
});

test('something that is not SMTP is a deferral', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => ({ raw: 'HTTP/1.1 400 Bad\r\n' }) } }],
  });
  t.is(deferral(await deferredBy(world, 'ann@there.invalid')).category, 'protocol');
});

test('a reply to the message that is not SMTP leaves open whether it was taken', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { dot: () => ({ raw: '2 much\r\n' }) } }] });
  const { category, possibleDuplicate } = deferral(await deferredBy(world, 'ann@there.invalid'));
  t.deepEqual({ category, possibleDuplicate }, { category: 'protocol', possibleDuplicate: true });
});

test('a 5xx greeting on every host is a deferral', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => '554 5.7.1 no service for you' } }],
  });
  const email = await deferredBy(world, 'ann@there.invalid');
  t.is(email.recipients[0].lastResponse.code, 554);
});

test('STARTTLS whose handshake fails is followed by one conversation in clear', async (t) => {
  const world = await startWorld(t, { exchangers: [{ tls: 'broken' }] });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const [message] = await world.mx[0]!.received(1);
  t.false(message!.tls);
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].tls, null);
  t.is(email.recipients[0].attempts, 1, 'one attempt spans the clear retry');
});

for (const tls of ['refused', false] as const) {
  test(`STARTTLS ${tls === 'refused' ? 'refused' : 'not offered'}: the mail goes in clear`, async (t) => {
    const world = await startWorld(t, { exchangers: [{ tls }] });
    const { body } = await world.send({ to: 'ann@there.invalid' });
    const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
    t.is(email.recipients[0].tls, null);
  });
}
