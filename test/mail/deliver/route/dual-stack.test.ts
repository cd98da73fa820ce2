/** Hosts with several addresses, and several hosts: IPv6 here is ::ffff:127.0.0.x, which every machine has. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startSilent } from '#lab/mx/silent.ts';
import { startWorld } from '#lab/scenes/world.ts';

test('a dead IPv6 path does not delay the mail', async (t) => {
  // Longer than a test may hang.
  const world = await startWorld(t, { settings: { POSTERN_MTA_TIMEOUTS: 'connect=1h' } });
  const silent = await startSilent(['127.0.8.40'], world.mx[0]!.port);
  t.teardown(silent.close);
  world.dns.set({
    'dual.invalid': { MX: ['10 both.invalid'] },
    'both.invalid': { A: ['127.0.0.2'], AAAA: ['::ffff:127.0.8.40'] },
  });
  const { body } = await world.send({ to: 'ann@dual.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 1);
  t.like(email.recipients[0].mx, { host: 'both.invalid', address: '127.0.0.2' });
});

test('mail goes by IPv6 where it answers', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: { 'dual.invalid': { A: ['127.0.0.2'], AAAA: ['::ffff:127.0.0.3'] } },
  });
  const { body } = await world.send({ to: 'ann@dual.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].mx.address, '::ffff:127.0.0.3');
  t.is(world.mx[0]!.sessions.length, 0);
});

test('every address of every host is tried before the mail is deferred', async (t) => {
  const world = await startWorld(t, {
    zone: {
      'far.invalid': { MX: ['10 dead.invalid', '20 last.invalid'] },
      'dead.invalid': { A: ['127.0.8.41', '127.0.8.42'], AAAA: ['::ffff:127.0.8.43'] },
      'last.invalid': { A: ['127.0.8.44', '127.0.8.45', '127.0.0.2'] },
    },
  });
  const { body } = await world.send({ to: 'ann@far.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 1);
  t.like(email.recipients[0].mx, { host: 'last.invalid', address: '127.0.0.2' });
});

async function oneMailAConnection(t: ExecutionContext): Promise<string> {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'shaping.jsonc');
  await writeFile(path, JSON.stringify({ rules: [{ mx: '.invalid', mailsPerConnection: 1 }] }));
  return path;
}

test('equal hosts share the mail', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    overrides: { random: Math.random },
    // The host is chosen for a connection; this has each mail open one.
    settings: { POSTERN_SHAPING_FILE: await oneMailAConnection(t) },
    zone: Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [
        `there${n}.invalid`,
        { MX: ['10 mx1.invalid', '10 mx2.invalid'] },
      ]),
    ),
  });
  const sends = await Promise.all(
    Array.from({ length: 40 }, (_, n) => world.send({ to: `ann@there${n}.invalid` })),
  );
  for (const { body } of sends) await world.when(body.emailId, ({ status }) => status === 'delivered');
  // 20 each; that one has fewer than 5 happens once in ten million runs.
  for (const { messages } of world.mx) t.true(messages.length >= 5, String(messages.length));
});
