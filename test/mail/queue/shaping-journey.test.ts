import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

async function shapingFile(t: ExecutionContext, content: object): Promise<string> {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'shaping.jsonc');
  await writeFile(path, JSON.stringify(content));
  return path;
}

test('a rule of the shaping file bounds the connections to its domain', async (t) => {
  const rules = [{ domain: 'there.invalid', connections: 2 }];
  const settings = { POSTERN_SHAPING_FILE: await shapingFile(t, { rules }) };
  const world = await startWorld(t, { settings });
  const mx = world.mx[0]!;
  const gate = Promise.withResolvers<void>();
  mx.script = { data: () => gate.promise.then(() => undefined) };
  for (let n = 0; n < 8; n++) await world.send({ to: `${n}@there.invalid` });
  await until(() => mx.connections >= 2);
  gate.resolve();
  await mx.received(8);
  t.is(mx.maxConnections, 2);
});

test('a shaping file with a fault stops the start, and names the rule', async (t) => {
  const rules = [{ domain: 'there.invalid', connections: 'many' }];
  const settings = { POSTERN_SHAPING_FILE: await shapingFile(t, { rules }) };
  await t.throwsAsync(startWorld(t, { settings }), {
    name: 'ConfigError',
    message: /^POSTERN_SHAPING_FILE: rule 1, connections: "many" is not a number of connections/,
  });
});

test('a rate is spread evenly over the minute', async (t) => {
  const rules = [{ domain: 'there.invalid', perMinute: 12 }];
  const settings = { POSTERN_SHAPING_FILE: await shapingFile(t, { rules }) };
  const world = await startWorld(t, { settings });
  const mx = world.mx[0]!;
  await world.send({ to: 'first@there.invalid' });
  await mx.received(1);
  for (let n = 0; n < 4; n++) await world.send({ to: `${n}@there.invalid`, subject: `${n}` });
  // One each five seconds, and none before.
  for (let n = 2; n <= 5; n++) {
    await world.clock.advance('4s');
    await nothingUnderWay(world);
    t.is(mx.messages.length, n - 1);
    await world.clock.advance('1s');
    await world.clock.passUntil(() => mx.messages.length >= n, { step: 100 });
    await nothingUnderWay(world);
  }
});

async function nothingUnderWay(world: Awaited<ReturnType<typeof startWorld>>): Promise<void> {
  await world.clock.passUntil(
    async () => {
      const rows = await world.db('deliveries').where({ status: 'sending' });
      return rows.length <= 1;
    },
    { step: 0 },
  );
}

test('a shaping file that changes while the server runs takes effect within a second', async (t) => {
  const path = await shapingFile(t, { rules: [] });
  const world = await startWorld(t, { settings: { POSTERN_SHAPING_FILE: path } });
  const mx = world.mx[0]!;
  await world.send({ to: 'first@there.invalid' });
  await mx.received(1);
  await writeFile(path, JSON.stringify({ rules: [{ destination: 'mx1.invalid', perMinute: 12 }] }));
  await world.clock.advance('1s');
  const hasArrived = (to: string) => mx.messages.some((message) => message.to.includes(to));
  let sent = 0;
  // While the server still reads the file, some pass. One that has to wait is not leased when it is accepted.
  const waiting = await world.clock.passUntil(
    async () => {
      const to = `${++sent}@there.invalid`;
      const { body } = await world.send({ to, subject: to });
      const { status } = await world.db('deliveries').where({ email_id: body.emailId }).first('status');
      return status === 'queued' && to;
    },
    { step: 10 },
  );
  await world.clock.advance('4s');
  t.false(hasArrived(waiting), 'one each five seconds');
  await world.clock.passUntil(() => hasArrived(waiting), { step: 100 });
});
