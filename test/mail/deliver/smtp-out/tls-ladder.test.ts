/** What the certificates of others may do to a mail, and what they may not. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import type { MxOptions } from '#lab/mx/mx.ts';
import { startWorld } from '#lab/scenes/world.ts';

const pemOf = (name: string) => readFileSync(new URL(`../../../fixtures/tls/${name}.pem`, import.meta.url));

/** Hosts that nobody should trust, and whether the mail goes to them under TLS all the same. */
const hosts: [what: string, mx: MxOptions, tls: boolean][] = [
  ['self-signed', {}, true],
  ['of another name', { pem: pemOf('other') }, true],
  ['expired', { pem: pemOf('expired') }, true],
  ['issued by no authority', { pem: pemOf('forged') }, true],
  ['that no handshake comes to', { tls: 'broken' }, false],
];

for (const [what, mx, tls] of hosts) {
  test(`a certificate ${what} holds no mail back`, async (t) => {
    const world = await startWorld(t, { exchangers: [mx] });
    const { body } = await world.send({ to: 'ann@there.invalid' });
    const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
    t.is(email.recipients[0].attempts, 1);
    t.is(email.recipients[0].tls?.verified, tls ? false : undefined);
    t.is(world.mx[0]!.messages[0]!.tls, tls);
  });
}

test('a host whose TLS failed is remembered', async (t) => {
  const world = await startWorld(t, {
    // What follows the reply ends the connection, so that each mail needs one of its own.
    exchangers: [{ tls: 'broken', script: { dot: () => ({ raw: '250 2.0.0 taken\r\n250 twice\r\n' }) } }],
  });
  const [mx] = world.mx;
  const starts = () => mx!.sessions.filter(({ commands }) => commands.includes('STARTTLS')).length;
  const deliver = async (subject: string) => {
    const { body } = await world.send({ to: 'ann@there.invalid', subject });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
  };
  await deliver('the first');
  t.is(starts(), 1);
  await deliver('the second');
  t.is(starts(), 1, 'in clear at once');
  await world.clock.jump('25h');
  await deliver('the next day');
  t.is(starts(), 2, 'tried again');
});

for (const tls of [false, 'refused', 'broken'] as const) {
  test(`a demand for TLS is never met in clear: STARTTLS ${tls || 'not offered'}`, async (t) => {
    const world = await startWorld(t, { exchangers: [{ tls }] });
    const { body } = await world.send({ to: 'greylist@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'deferred');
    await world.db('emails').where({ id: body.emailId }).update({ tls: 'encrypted' });
    const sessions = world.mx[0]!.sessions.length;
    await world.clock.advance('30s');
    const email = await world.passUntil(body.emailId, ({ recipients }) => recipients[0].attempts === 2);
    t.is(email.status, 'deferred');
    t.is(email.events.at(-1).data.category, 'tls');
    const said = world.mx[0]!.sessions.slice(sessions).flatMap(({ commands }) => commands);
    t.false(said.some((command) => command.startsWith('MAIL')));
    t.is(world.mx[0]!.messages.length, 0);
  });
}
