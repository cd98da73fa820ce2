/** Many mails go over one connection. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { attemptDetail } from '#platform/database/tables/packed-records.ts';

/** Idle connections wait as long as they may: by the real clock, and five seconds by default. */
async function start(t: ExecutionContext, settings: Record<string, string> = {}): Promise<World> {
  const file = join(await temporaryDirectory(t), 'shaping.jsonc');
  await writeFile(file, '{ "rules": [{ "domain": "there.invalid", "idle": "5m" }] }');
  return startWorld(t, { settings: { POSTERN_SHAPING_FILE: file, ...settings } });
}

const mailsOf = (world: World) =>
  world.mx[0]!.sessions.map(({ commands }) => commands.filter((one) => one.startsWith('MAIL')).length);

let subjects = 0;

const send = async (world: World, n: number, to = (index: number) => `user${index}@there.invalid`) => {
  const sent = await Promise.all(
    Array.from({ length: n }, (_, index) => world.send({ to: to(index), subject: `${subjects++}` })),
  );
  return sent.map(({ body }) => body.emailId as string);
};

async function transcriptOf(world: World, emailId: string): Promise<string[]> {
  const row = await world
    .db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .where('deliveries.email_id', emailId)
    .orderBy('attempts.started_at', 'desc')
    .first('attempts.*');
  return attemptDetail(row).transcript.map(({ text }) => text);
}

test('many mails go over one connection', async (t) => {
  const world = await start(t, { POSTERN_MTA_PER_DESTINATION: '1' });
  await send(world, 20);
  await world.mx[0]!.received(20);
  t.deepEqual(mailsOf(world), [20]);
  t.is(
    world.mx[0]!.sessions[0]!.commands.filter((one) => one.startsWith('EHLO')).length,
    2,
    'in clear, in TLS',
  );
});

test('never more connections than the destination may have, each used again', async (t) => {
  const world = await start(t, { POSTERN_MTA_PER_DESTINATION: '3' });
  await send(world, 60);
  await world.mx[0]!.received(60);
  t.true(world.mx[0]!.maxConnections <= 3);
  t.is(mailsOf(world).length, 3);
});

test('a hundred mails, then a new connection', async (t) => {
  const world = await start(t, { POSTERN_MTA_PER_DESTINATION: '1' });
  await send(world, 101);
  await world.mx[0]!.received(101);
  t.deepEqual(mailsOf(world), [100, 1]);
});

test('a refused mail does not cost the connection: RSET, and the next', async (t) => {
  const world = await start(t, { POSTERN_MTA_PER_DESTINATION: '1' });
  await send(world, 10, (index) => `${index % 2 ? 'unknown' : 'ann'}+${index}@there.invalid`);
  await world.mx[0]!.received(5);
  const [session] = world.mx[0]!.sessions;
  t.is(world.mx[0]!.sessions.length, 1);
  t.true(session!.commands.includes('RSET'));
});

test('the transcript of a mail over a used connection says so', async (t) => {
  const world = await start(t);
  const [first] = await send(world, 1);
  await world.when(first!, ({ status }) => status === 'delivered');
  const [second] = await send(world, 1);
  const email = await world.when(second!, ({ status }) => status === 'delivered');
  const [note] = await transcriptOf(world, second!);
  t.regex(
    note!,
    /^over a connection to mx1\.invalid \[127\.0\.0\.2\] that has carried one mail; TLSv1\.3 TLS_AES_256_GCM_SHA384 X25519MLKEM768, not verified/,
  );
  t.is(email.recipients[0].tls.protocol, 'TLSv1.3');
});

for (const [how, end] of [
  ['closed while it waited', undefined],
  ['closed with a 421 at MAIL', '421 4.4.2 idle too long'],
] as const) {
  test(`a connection ${how} costs the next mail no attempt`, async (t) => {
    const world = await start(t);
    const [first] = await send(world, 1);
    await world.when(first!, ({ status }) => status === 'delivered');
    // The reply to the next MAIL; or the end of the connection in its place.
    world.mx[0]!.script = {
      mail: ({ session }) => (session.id === 1 ? (end ?? 'close') : undefined),
    };
    const [second] = await send(world, 1);
    const email = await world.when(second!, ({ status }) => status === 'delivered');
    t.is(email.recipients[0].attempts, 1);
    t.is(world.mx[0]!.sessions.length, 2);
    t.true((await transcriptOf(world, second!)).some((text) => /had closed this connection/.test(text)));
  });
}

test('stopping says QUIT to the connections that wait', async (t) => {
  const world = await start(t);
  const [first] = await send(world, 1);
  await world.when(first!, ({ status }) => status === 'delivered');
  await world.restart();
  t.is(world.mx[0]!.sessions[0]!.commands.at(-1), 'QUIT');
  t.is(world.mx[0]!.connections, 0);
});
