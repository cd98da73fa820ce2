/** Hosts that break every rule: none hangs or crashes anything, or costs a mail more than an attempt. */
import test from 'ava';
import { startHostile } from '#lab/mx/mx-hostile.ts';
import { type Case, hostileCases } from '#lab/mx/mx-hostile-scripts.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const timeouts = ['greeting', 'ehlo', 'tls', 'mail', 'rcpt', 'data', 'dot'].map((phase) => `${phase}=4s`);

// Alone, because the memory of the process is that of all tests of the room.
test.serial('hostile hosts have their mail deferred and nothing worse; the next mail goes out', async (t) => {
  const addressOf = (index: number) => `127.0.${1 + (index >> 7)}.${1 + (index & 127)}`;
  const zone = hostileCases.map((_, index) => [`h${index}.invalid`, { A: [addressOf(index)] }]);
  const world = await startWorld(t, {
    zone: Object.fromEntries(zone),
    settings: { POSTERN_MTA_TIMEOUTS: timeouts.join(' '), POSTERN_MTA_CONCURRENCY: '300' },
  });
  const { port } = world.mx[0]!;
  const servers = await Promise.all(
    hostileCases.map(({ steps }, index) => startHostile(addressOf(index), port, steps)),
  );
  t.teardown(() => Promise.all(servers.map((server) => server.close())));
  const before = process.memoryUsage().rss;
  let max = 0;
  const gauge = setInterval(() => {
    max = Math.max(max, process.memoryUsage().rss);
  }, 20);
  t.teardown(() => clearInterval(gauge));

  const sent = await Promise.all(
    hostileCases.map((_, index) => world.send({ to: `ann@h${index}.invalid`, subject: `${index}` })),
  );
  const results: Result[] = [];
  for (const { body } of sent) {
    const email = await world.when(body.emailId, ({ status }) => status !== 'queued' && status !== 'sending');
    results.push({
      status: email.status,
      attempts: email.recipients[0].attempts,
      ...email.events.at(-1).data,
    });
  }
  t.deepEqual(hostileCases.map((one, index) => faultOf(one, results[index]!)).filter(Boolean), []);

  // The servers flood from this very process; what they hold counts too.
  t.true(max - before < 300 * 1024 * 1024, `memory grew by ${(max - before) >> 20} MB`);
  const { body } = await world.send({ to: 'bob@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await until(() => servers.every(({ connections }) => connections === 0), {
    what: () => {
      const held = hostileCases.filter((_, index) => servers[index]!.connections > 0);
      return `no connection to be left; left: ${held.map(({ name }) => name).join(', ')}`;
    },
  });
});

interface Result {
  status: string;
  attempts: number;
  category?: string;
  bounce?: { category: string };
  possibleDuplicate?: boolean;
}

/** What is wrong with how a conversation ended; null where nothing is. */
function faultOf(wanted: Case, { status, attempts, possibleDuplicate, ...rest }: Result): object | null {
  const category = rest.category ?? rest.bounce?.category;
  const isRight =
    status === wanted.outcome &&
    attempts === 1 &&
    (wanted.category === undefined || category === wanted.category) &&
    (wanted.possibleDuplicate === undefined || possibleDuplicate === wanted.possibleDuplicate);
  return isRight ? null : { name: wanted.name, status, attempts, category, possibleDuplicate, ...rest };
}
