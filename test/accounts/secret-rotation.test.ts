/**
 * The secret is replaced while mail is taken, sent and tracked: no send fails, nothing that was sealed or signed before is
 * lost, whatever is killed on the way.
 */
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { countSealed } from '#accounts/rows/sealed-columns.ts';
import { createSeal } from '#accounts/seal.ts';
import { cliOf, createCli } from '#lab/cli.ts';
import { oneKind } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createReturnPathReader } from '#mail/returned/return-path.ts';
import { fixedSecrets, readSecrets } from '#platform/base/secrets.ts';

const html = '<p><a href="https://app.invalid/">Go</a></p>';

test('the secret is rotated under load, and the old one is retired', async (t) => {
  const world = await startWorld(t);
  const { json, refusal, cli } = cliOf(t, world);
  const file = join(world.config.dataDir, 'secret');
  const [old] = readSecrets(file);
  await json('webhook add https://127.0.0.1.invalid/x --org Tenant');
  const tracked = { to: 'ann@there.invalid', html, tracking: { clickTracking: true } };
  const mails = world.mx[0]!.messages;
  await world.send(tracked);
  await until(() => mails.length === 1, { what: 'a mail from before' });
  const linkIn = (raw: Buffer) =>
    /http:\/\/[^"\s]+\/t\/c\/[\w-]+/.exec(raw.toString().replaceAll(/=\r\n/g, ''))![0];
  const link = linkIn(mails[0]!.raw);
  const cursor = (await world.call('GET', '/api/public/events')).body.next;

  const statuses: number[] = [];
  let isOver = false;
  const load = Promise.all(
    [1, 2, 3, 4].map(async (n) => {
      for (let i = 0; !isOver; i++)
        statuses.push((await world.send({ ...tracked, subject: `${n} ${i}` })).status);
    }),
  );
  await until(() => statuses.length > 20, { what: 'the load to get going' });
  const rotated = await cli(`secret rotate --json${oneKind === 'postgres' ? ' --only-node' : ''}`);
  t.is(rotated.code, 0, rotated.stderr);
  t.is(JSON.parse(rotated.stdout.toString()).resealed, 2);
  const sofar = statuses.length;
  await until(() => statuses.length > sofar + 50, { what: 'the load to go on' });
  isOver = true;
  await load;
  t.deepEqual([...new Set(statuses)], [200], 'no send failed');

  const [current, ...others] = readSecrets(file);
  t.deepEqual(others, [old]);
  t.is((await stat(file)).mode & 0o777, 0o600);
  t.is((await countSealed(world.db, createSeal(fixedSecrets(current)).opens)).closed, 0);
  const signedAnew = createReturnPathReader(fixedSecrets(current));
  await until(
    async () => {
      const count = mails.length;
      await world.send({ ...tracked, subject: `anew ${count}` });
      await until(() => mails.length > count, { what: 'a mail from after' });
      return signedAnew(mails.at(-1)!.from.split('@')[0]!) !== null;
    },
    { what: 'the server to sign with the new one' },
  );
  // After a restart at another port.
  const follow = async (url: string) =>
    (await fetch(new URL(new URL(url).pathname, world.url()), { redirect: 'manual' })).status;
  t.deepEqual([await follow(link), await follow(linkIn(mails.at(-1)!.raw))], [302, 302]);
  const page = await world.call('GET', `/api/public/events?after=${cursor}&limit=1`);
  t.is(page.status, 200, 'a cursor of before');
  await world.restart();
  t.is((await world.send({ to: 'bob@there.invalid' })).status, 200);

  t.regex(await refusal(1, 'secret retire'), /in use only since .* wait until/);
  const before = new Date(Date.now() - 31 * 24 * 3_600_000);
  await utimes(file, before, before);
  const retired = await cli('secret retire');
  t.is(retired.code, 0, retired.stderr);
  t.deepEqual(readSecrets(file), [current]);
  await until(async () => (await follow(link)) === 404, { what: 'the old link to be unknown' });
  t.is((await world.send({ to: 'eve@there.invalid' })).status, 200);
  t.regex(await refusal(1, 'secret retire'), /only the current secret/);
});

test('a rotation that is killed between the file and the rows: everything opens, and the next rotation finishes it', async (t) => {
  const world = await startWorld(t);
  const { json } = cliOf(t, world);
  const file = join(world.config.dataDir, 'secret');
  await writeFile(file, `the new one, as it is written first\n${await readFile(file, 'utf8')}`);
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
  const shown = await json('secret show');
  t.deepEqual(
    shown.secrets.map((one: { sealed: number; isCurrent: boolean }) => [one.isCurrent, one.sealed]),
    [
      [true, 0],
      [false, 1],
    ],
  );
  t.is((await json('secret reseal')).resealed, 1);
  t.is((await json('secret reseal')).resealed, 0);
  t.is((await world.send({ to: 'bob@there.invalid' })).status, 200);
});

test('a secret that is a setting is first named among the others, then used, then resealed with', async (t) => {
  const [first, second] = ['the first secret of all', 'the second secret of all'].map((one) =>
    one.replaceAll(' ', '-'),
  );
  const world = await startWorld(t, { database: 'sqlite', settings: { POSTERN_SECRET: first! } });
  const { dataDir } = world.config;
  const of = (secret: string, others: string) =>
    createCli(t, { POSTERN_DATA_DIR: dataDir, POSTERN_SECRET: secret, POSTERN_SECRET_OTHERS: others });
  t.regex(await of(first!, second!).refusal(1, 'secret rotate'), /POSTERN_SECRET_OTHERS/);
  t.is((await of(second!, first!).json('secret reseal')).resealed, 1);
  Object.assign(world.config, { secret: first, secretOthers: [] });
  await t.throwsAsync(world.restart(), {
    message: /1 of the 1 keys .* another POSTERN_SECRET; .*POSTERN_SECRET_OTHERS/,
  });
  Object.assign(world.config, { secret: second });
  await world.restart();
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
});
