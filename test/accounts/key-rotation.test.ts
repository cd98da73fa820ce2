/** `postern key rotate`: both keys work for a while, then the new one alone. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

test('after a rotation the old API key works until its time is up', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const [{ id }] = await json('key list --org Tenant');
  const made = await json('key rotate', id);
  const end = Date.parse(made.oldKeyUntil) - Date.now();
  t.true(end > 23 * 3_600_000 && end <= 24 * 3_600_000);
  const ask = async (key: string) =>
    (await world.call('GET', '/api/public/credits', { headers: { authorization: `Bearer ${key}` } })).status;
  t.deepEqual([await ask(world.key), await ask(made.key)], [200, 200]);
  t.regex(await refusal(1, 'key rotate', id), /has been replaced and works until 2.*Z unless you revoke it/);

  await world.clock.jump('25h');
  await until(async () => (await ask(world.key)) === 401, { what: 'the old one to end' });
  t.is(await ask(made.key), 200);

  const last = await json('key rotate', made.id, '--overlap', '1h');
  await json('key revoke', made.id);
  await until(async () => (await ask(made.key)) === 401, { what: 'what is leaked to end at once' });
  t.is(await ask(last.key), 200);
});

test('a rotation without a grace period ends the old API key at once', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const [{ id }] = await json('key list --org Tenant');
  t.regex(await refusal(2, 'key rotate', id, '--now', '--overlap', '1h'), /cannot be used with/);
  const made = await json('key rotate', id, '--now');
  t.is(made.oldKeyUntil, undefined);
  const ask = async (key: string) =>
    (await world.call('GET', '/api/public/credits', { headers: { authorization: `Bearer ${key}` } })).status;
  await until(async () => (await ask(world.key)) === 401, { what: 'the leaked key to end' });
  t.is(await ask(made.key), 200);
});
