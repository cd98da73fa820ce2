/** How much a destination is given at once: low at first, more while it goes well, less when it asks for less. */
import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { listAttempts } from '#mail/record/rows/emails.ts';

const count = 120;

test('an exchanger that refuses a fourth connection gets all its mail over three', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_PER_DESTINATION: '20' } });
  const [mx] = world.mx;
  mx!.script = {
    greeting: () => (mx!.connections > 3 ? '421 4.7.0 too many connections from you' : undefined),
  };
  const sends = Array.from({ length: count }, (_, n) =>
    world.send({ to: `n${n}@there.invalid`, subject: `${n}` }),
  );
  await Promise.all(sends);
  await mx!.received(count);
  const refused = mx!.sessions.filter(({ transcript }) => transcript[0]?.startsWith('S: 421')).length;
  t.true(refused <= 8, `${refused} connections were refused on the way to three`);
  const rows = await world.db('deliveries').where('attempts', '>', 1);
  t.is(rows.length, 0, 'no mail was put off for it');

  const ids: string[] = await world.db('emails').pluck('id');
  await until(async () => (await world.db('attempts')).length === count);
  const attempts = await Promise.all(ids.map((id) => listAttempts(world.db, id)));
  const texts = attempts.flat().map(({ transcript }) => transcript.map(({ text }) => text));
  const putBack = texts.filter((lines) => lines.some((text) => text.startsWith('421 4.7.0')));
  t.is(texts.length, count, 'each mail has one attempt');
  t.true(refused === 0 || putBack.length > 0, 'the refusals are in the transcripts');
  t.true(
    putBack.every((lines) => lines.some((text) => text.startsWith('354'))),
    'with what followed',
  );
});

test('a destination that takes whatever comes is given all its connections, and no more', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_PER_DESTINATION: '8' } });
  let atOnce = 0;
  let max = 0;
  world.mx[0]!.script = {
    async dot() {
      atOnce += 1;
      max = Math.max(max, atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      atOnce -= 1;
      return undefined;
    },
  };
  const sends = Array.from({ length: count }, (_, n) =>
    world.send({ to: `n${n}@there.invalid`, subject: `${n}` }),
  );
  await Promise.all(sends);
  await world.mx[0]!.received(count);
  t.true(world.mx[0]!.maxConnections <= 8);
});
