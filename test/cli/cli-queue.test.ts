/** `postern queue`, beside what it takes for a server (its lock): what it says of a queue, what it refuses, and in which words. */
import test from 'ava';
import { cliOf, createCli } from '#lab/cli.ts';
import { golden } from '#lab/cli-golden.ts';
import { minute, openQueue } from '#lab/database/queue-rows.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { iso } from '#platform/base/clock.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';

const circuitOf = (at: number) => ({
  connections: 0,
  limit: 1,
  waiting: 0,
  busySince: null,
  lastReply: null,
  lastReplyAt: null,
  circuit: { since: at - 4 * minute, failures: 5, nextProbeAt: at + 2 * minute, reason: 'no answer' },
});
const busyAt = (at: number) => ({
  connections: 3,
  limit: 3,
  waiting: 40,
  circuit: null,
  busySince: null,
  lastReply: '250 2.0.0 ok',
  lastReplyAt: at,
});

/** What the command line takes for a server. */
async function openServed(t: Parameters<typeof openQueue>[0]) {
  const queue = await openQueue(t, 'sqlite');
  const stop = await lockDataDir(queue.dataDir);
  t.teardown(stop);
  return { ...queue, stop };
}

const greylisted = { code: 450, enhanced: '4.2.0', text: 'Greylisted, come back later' };

/** Destinations, each in another condition. */
async function backlog(t: Parameters<typeof openQueue>[0]) {
  const queue = await openServed(t);
  const at = Date.now();
  const overdue = {
    status: 'queued',
    attempts: 0,
    created_at: at - 50 * minute,
    due_at: at - 3 * minute,
    expires_at: at + 60 * minute,
  };
  const mail = {
    dead: await queue.add({ ...overdue, recipient: 'ann@dead.invalid' }),
    busy: await queue.add({ ...overdue, recipient: 'ann@busy.invalid' }, { recipient: 'bob@busy.invalid' }),
    shut: await queue.add({ ...overdue, recipient: 'ann@shut.invalid' }),
    throttled: await queue.add({ ...overdue, recipient: 'ann@throttled.invalid' }),
    grey: await queue.add({
      recipient: 'ann@grey.invalid',
      created_at: at - minute,
      due_at: at + 4 * minute,
      updated_at: at - minute,
      last_reply: JSON.stringify(greylisted),
    }),
    fine: await queue.add({ recipient: 'ann@fine.invalid', created_at: at, due_at: at + 10 * minute }),
  };
  const throttled = { connections: 1, limit: 2, busySince: at - minute, busyReply: '421 4.7.0 slow down' };
  const states = {
    'mx.dead.invalid': circuitOf(at),
    'mx.busy.invalid': busyAt(at),
    'mx.throttled.invalid': { ...busyAt(at), ...throttled, lastReply: '250 2.0.0 ok' },
  };
  for (const [name, state] of Object.entries(states)) {
    // As fresh as if just said, however long the test takes.
    const said = { name, node: 'a', state: JSON.stringify(state), at: at + 10 * minute };
    await queue.db('destinations').insert(said);
    await queue.db('routes').insert({ domain: name.slice(3), destination: name });
  }
  return { ...queue, mail, at, ...createCli(t, queue.settings) };
}

test('the summary says how each destination stands', async (t) => {
  const { json, cli, at } = await backlog(t);
  await json('queue suspend shut.invalid --for 2h --reason', 'their wish');
  await json('queue suspend idle.invalid --reason', 'no mail yet');
  const lines = await json('queue summary');
  const conditions = lines.map((line: { destination: string; condition: { text: string } }) => [
    line.destination,
    line.condition.text.replace(/\d{4}-[^ :]+:\d\d:\d\d\.\d+Z/, 'TIME'),
  ]);
  t.deepEqual(conditions, [
    ['mx.busy.invalid', 'busy, 3 connections'],
    ['mx.dead.invalid', 'unreachable since TIME: no answer'],
    ['shut.invalid', 'suspended until TIME: their wish'],
    ['mx.throttled.invalid', 'throttled since TIME, 1 of 2 connections: 421 4.7.0 slow down'],
    ['grey.invalid', 'greylisting since TIME: 450 4.2.0 Greylisted, come back later'],
    ['fine.invalid', 'ok'],
    ['idle.invalid', 'suspended until TIME: no mail yet'],
  ]);
  t.like(lines[0], { domain: 'busy.invalid', total: 2, parked: 2, connections: 3, limit: 3 });
  t.like(lines[0], { ages: { '80m': 1 }, lastReply: '250 2.0.0 ok' });
  t.is(lines[1].nextAttemptAt, lines[1].circuit.nextProbeAt);
  t.is(lines[2].condition.cause, 'suspended');
  t.like(lines[3].condition, { cause: 'throttled', since: iso(at - minute), reply: '421 4.7.0 slow down' });
  t.like(lines[4].condition, {
    cause: 'greylisting',
    since: iso(at - minute),
    reply: '450 4.2.0 Greylisted, come back later',
  });
  t.like(lines[6], { total: 0, oldestAt: null });
  const top = (await json('top --once')).queue.destinations;
  const inTop = (name: string) => top.find((line: { destination: string }) => line.destination === name);
  for (const line of [lines[3], lines[4]]) t.deepEqual(inTop(line.destination).condition, line.condition);
  const [listed] = await json('queue list --destination mx.dead.invalid');
  t.is(listed.nextAttemptAt, listed.dueSince);

  const plain = (await cli('queue summary')).stdout.toString().split('\n');
  t.is(plain[0]!.split('\t').length, 16);
  t.is(plain[0]!.split('\t')[0], 'mx.busy.invalid');
});

test('a rule says how much waiting mail it is for, and the status lists it with what else was ordered', async (t) => {
  const { json, cli } = await backlog(t);
  t.is((await json('queue rule dead.invalid hold')).waiting, 1);
  await json('queue suspend shut.invalid --reason', 'their wish');
  const { orders } = JSON.parse((await cli('status --json')).stdout.toString());
  t.deepEqual(
    orders.map(({ kind, subject, count }: Record<string, unknown>) => [kind, subject, count]),
    [
      ['suspend', 'shut.invalid', 1],
      ['hold', 'dead.invalid', 1],
    ],
  );
  t.regex(
    (await cli('status')).stdout.toString(),
    /^order\thold\tdead\.invalid\t2\S+\t1\tpostern queue rule/m,
  );
});

test('the status names what is wrong, on a terminal and in a pipe', async (t) => {
  const scene = await backlog(t);
  await golden(t, scene, 'status', [[/for [\d.]+ (s|minutes):/g, 'for AGO:']]);
  const top = (await scene.cli('top --once')).stdout.toString().split('\n');
  t.is(top[0], 'status\tverdict\twell\tNo problem needs action, 2 to watch.');
  t.regex(top[1]!, /^status\twatch\tunreachable\tmx\.dead\.invalid\t/);
  const status = JSON.parse((await scene.cli('status --json')).stdout.toString());
  t.deepEqual(Object.keys(status.needs[0]), [
    ...['cause', 'severity', 'subject', 'since', 'figure', 'command', 'advice', 'reply', 'waiting'],
    ...['perMinute', 'drainSeconds'],
  ]);
  await scene.stop();
  const { code, stdout } = await scene.cli('status');
  t.is(code, 1);
  t.regex(stdout.toString(), /^verdict\tneeds_attention\t.*\nact\tno_server\tthis server\t/);
});

test('why says what mail waits for', async (t) => {
  const { json, mail, db, at, stop } = await backlog(t);
  await json('queue suspend shut.invalid --reason', 'their wish');
  const why = async (name: keyof typeof mail) => {
    const [told] = (await json(`email why ${mail[name].emailId}`)).recipients;
    return told.why;
  };
  t.regex(
    await why('dead'),
    /^It has not been tried yet\. mx\.dead\.invalid cannot be reached, since 2\S+ \("no answer"\)\. It failed 5 times in a row\. Postern keeps trying, next 2\S+, and sends the waiting mail once a host accepts it\./,
  );
  t.regex(
    await why('busy'),
    /It waits for a connection: all connections to mx\.busy\.invalid are in use \(3 of 3\)\./,
  );
  t.regex(
    await why('shut'),
    /waits because the operator suspended shut\.invalid at 2\S+ \("their wish"\), until 2\S+\. It expires 2/,
  );
  t.regex(
    await why('throttled'),
    /It waits because mx\.throttled\.invalid has been asking us since 2\S+ to slow down \("421 4\.7\.0 slow down"\); it now gets 1 of 2 connections\./,
  );
  t.regex(await why('fine'), /The next attempt is due 2\S+; it expires 2/);
  await db('deliveries')
    .where({ domain: 'fine.invalid' })
    .update({ due_at: at - 5 * minute });
  t.regex(await why('fine'), /It is due, and waits for its turn at fine\.invalid/);
  await stop();
  t.regex(await why('fine'), /It has been due since 2\S+, and no server is running; start one\./);
});

test('an action on the queue says what it did, or what it found if it did nothing', async (t) => {
  const { json, cli, refusal, mail } = await backlog(t);
  const hold = 'queue hold --reason test';
  t.like(await json(`${hold} --domain busy.invalid`), {
    order: 'hold',
    reason: 'test',
    moved: 2,
    sending: 0,
  });
  t.regex(
    await refusal(1, `${hold} --domain busy.invalid`),
    /nothing was held: the matching mail is 2 held; only queued or deferred or scheduled mail can be$/m,
  );
  t.regex(
    await refusal(1, `${hold} --domain nowhere.invalid`),
    /no queued mail matches; `postern queue list`/,
  );
  t.regex(await refusal(1, `${hold} ${mail.fine.emailId} --to eve@fine.invalid`), /no such recipient/);
  t.regex(
    await refusal(1, `queue release ${mail.fine.emailId} --reason test`),
    /nothing was released: ann@fine\.invalid is deferred; only held mail can be/,
  );
  t.regex(await refusal(1, `${hold} nonsense`), /no email with the id "nonsense"/);
  const released = await cli('queue release --destination mx.busy.invalid --reason test');
  t.is(released.stdout.toString(), 'released\t2\n');
});

test('an action leaves mail that is being sent alone, and counts it', async (t) => {
  const { cli, json, refusal, db, mail } = await backlog(t);
  const [id] = mail.busy.ids;
  await db('deliveries').where({ id }).update({ status: 'sending', lease_owner: 'a' });
  t.like(await json('queue cancel --domain busy.invalid --reason test'), { moved: 1, sending: 1 });
  t.regex(
    await refusal(1, `queue cancel ${mail.busy.emailId} --reason test`),
    /1 is being sent now; try again in a moment/,
  );
  t.is((await cli(`queue retry ${mail.busy.emailId} --reason test`)).code, 1);
});

test('a destination is suspended by any of its names, for an hour, and again, and resumed', async (t) => {
  const { json, refusal } = createCli(t, (await openServed(t)).settings);
  const names = 'queue suspend --reason test';
  t.is((await json(names, 'B.invalid, a.INVALID.')).destination, 'a.invalid,b.invalid', 'as it is called');
  t.is((await json(names, 'bücher.invalid')).destination, 'xn--bcher-kva.invalid');
  const first = await json(names, 'google');
  t.is(Date.parse(first.until) - Date.parse(first.createdAt), 60 * minute);
  const second = await json('queue suspend google --for 90s --reason again');
  t.is(Date.parse(second.until) - Date.parse(second.createdAt), 90_000);
  t.deepEqual(await json('queue resume Google --reason', 'all is well'), {
    resumed: 'google',
    reason: 'all is well',
    suspension: second,
    limit: null,
  });
  t.regex(
    await refusal(1, 'queue resume google --reason test'),
    /google is neither suspended nor slowed; `postern queue rules`/,
  );
});

test('whether a server is running is known at once, also of an empty queue', async (t) => {
  const world = await startWorld(t);
  const { cli } = cliOf(t, world);
  const looks = ['queue summary', 'queue list', 'queue suspend there.invalid --reason test', 'top --once'];
  const told = async (look: string) => (await cli(look)).stderr;
  // On PostgreSQL a node is heard from the moment that it listens to the others.
  await until(async () => (await told('queue summary')) === '', { what: 'the server to be seen' });
  for (const look of looks) t.is(await told(look), '', look);
  const server = async () => {
    const { stdout } = await cli('doctor --json');
    const findings: { check: string; verdict: string }[] = JSON.parse(stdout.toString()).findings;
    return findings.find(({ check }) => check === 'server')!.verdict;
  };
  t.is(await server(), 'ok');
  await world.stop();
  for (const look of looks)
    t.regex(await told(look), /^postern: no server is running, so no mail is sent; start one/, look);
  t.is(await server(), 'warning');
  t.false(JSON.parse((await cli('top --json')).stdout.toString()).isServed);
});
