/** A server that is stopped while strangers' DNS is silent does not wait for it, and accepts nothing that it has not looked at. */
import test from 'ava';
import { startReceiving } from '#lab/scenes/receiving.ts';
import { until } from '#lab/until.ts';

test('look-ups under way have no answer when the service stops', async (t) => {
  const world = await startReceiving(t, { zone: { 'silent.invalid': 'TIMEOUT' } });
  await world.route();
  const talk = await world.connect();
  await talk.begins('<ann@silent.invalid>', '<orders@x.invalid>');
  talk.write('From: ann@silent.invalid\r\nSubject: Hello\r\n\r\nHello\r\n.\r\n');
  await world.call('POST', '/api/public/domains', { body: '{"name":"quiet.invalid"}' });
  world.dns.set({ 'bounces.quiet.invalid': 'TIMEOUT' });
  const verified = world.call('POST', '/api/public/domains/quiet.invalid/verify');
  const isAsked = (wanted: string) => world.dns.queries.some(({ name }) => name === wanted);
  await until(() => isAsked('silent.invalid') && isAsked('bounces.quiet.invalid'), {
    what: 'both look-ups',
  });
  await world.stop();
  t.regex(await talk.reply(''), /^451 4\.3\.2 The server is shutting down/);
  t.is((await world.kept()).length, 0);
  const { status, body } = await verified;
  t.is(status, 200);
  t.true(JSON.stringify(body).includes('look-up failed: ECANCELLED'));
});
