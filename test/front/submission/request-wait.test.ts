/** Who waits for the next second, how long, and who delays whom: each organization waits for itself, and nobody for ever. */
import test, { type ExecutionContext } from 'ava';
import { type RequestLimits, takeRequest, type Usage } from '#accounts/limits.ts';
import { RequestWait } from '#front/submission/request-wait.ts';
import { manualClock } from '#lab/clock.ts';

const two: RequestLimits = { perSecond: 2, perDay: null };

function scene({ maxWaiting = 100 } = {}) {
  const clock = manualClock();
  const usages = new Map<string, Usage>();
  const take = async (orgId: string, limits: RequestLimits) => {
    const usage = usages.get(orgId) ?? { requests: 0, secondSince: 0, secondRequests: 0 };
    const taken = takeRequest(usage, limits, clock.now());
    usages.set(orgId, taken.usage);
    return taken;
  };
  const wait = new RequestWait({ take, clock, maxWaiting });
  /** The order in which requests were counted. */
  const counted: string[] = [];
  const start = async (name: string, orgId = 'a', limits = two, ending = new AbortController().signal) => {
    try {
      await wait.count(orgId, limits, ending);
      counted.push(name);
      return null;
    } catch (error) {
      return error as Error & { code: unknown; retryAfterMs: number };
    }
  };
  const startMany = async (count: number, orgId: string) => {
    const all = Array.from({ length: count }, (_, n) => start(`${orgId}${n}`, orgId));
    await clock.advance(0);
    return all;
  };
  return { clock, counted, start, startMany };
}

test('two requests go at once, and two with each second, in order of arrival', async (t) => {
  const { clock, counted, startMany } = scene();
  await startMany(6, 'a');
  t.deepEqual(counted, ['a0', 'a1']);
  await clock.advance(1000);
  t.deepEqual(counted, ['a0', 'a1', 'a2', 'a3']);
  await startMany(1, 'a');
  await clock.advance(1000);
  t.is(counted.length, 6);
  await clock.advance(1000);
  t.is(counted.length, 7);
});

test('an organization that waits delays no other', async (t) => {
  const { clock, counted, startMany } = scene();
  await startMany(40, 'a');
  await startMany(2, 'b');
  t.deepEqual(counted, ['a0', 'a1', 'b0', 'b1']);
  await startMany(2, 'b');
  await clock.advance(1000);
  t.true(counted.includes('b1') && counted.length === 8, String(counted));
});

test('what would wait longer than a minute is refused at once', async (t) => {
  const { startMany } = scene({ maxWaiting: 1000 });
  const refused = await (await startMany(123, 'a')).at(-1);
  t.regex(String(refused?.message), /2 requests a second, and 120 other mails wait/);
  t.is(refused?.retryAfterMs, 60_000);
});

test('what has waited a minute is refused then: another node, or the API, takes all', async (t) => {
  const clock = manualClock();
  const usage = { requests: 0, secondSince: 0, secondRequests: 2 };
  const windows = [{ name: 'second' as const, limit: 2, remaining: 0, resetMs: 1000 }];
  const take = async () => ({ allowed: false, usage, windows });
  const wait = new RequestWait({ take, clock, maxWaiting: 10 });
  const waiting = t.throwsAsync(wait.count('a', two, new AbortController().signal), {
    message: /2 requests/,
  });
  await clock.advance(0);
  await clock.advance('59s');
  t.true(clock.pending.length > 0);
  await clock.advance('2s');
  await waiting;
  t.deepEqual(clock.pending, []);
});

test('where the requests of the day are used up, all are refused at once, also those that wait already', async (t) => {
  const { clock, start } = scene();
  const limits = { perSecond: 2, perDay: 3 };
  const all = [1, 2, 3, 4, 5].map((n) => start(String(n), 'a', limits));
  await clock.advance(1000);
  const outcomes = await Promise.all(all);
  t.deepEqual(
    outcomes.map((one) => one?.message ?? null),
    [null, null, null, ...Array(2).fill('This organization may make 3 requests a day; wait for the next.')],
  );
  t.regex((await start('6', 'a', limits))!.message, /3 requests a day/);
});

test('an organization alone has half of the places, the next one half of the rest', async (t) => {
  const { clock, startMany } = scene({ maxWaiting: 20 });
  const refusals = async (all: Promise<Error | null>[]) => {
    const ended = await Promise.race([Promise.all(all.slice(-3)), clock.advance(0)]);
    return Array.isArray(ended) && ended.every(Boolean);
  };
  t.true(await refusals(await startMany(2 + 10 + 3, 'a')));
  t.true(await refusals(await startMany(2 + 5 + 3, 'b')));
});

async function leaving(t: ExecutionContext, abort: boolean): Promise<string[]> {
  const { clock, counted, start, startMany } = scene();
  const controller = new AbortController();
  await startMany(2, 'a');
  const first = start('gone', 'a', two, controller.signal);
  const second = start('next', 'a');
  await clock.advance(0);
  if (abort) controller.abort();
  if (abort) t.is((await first)?.message, 'The server is shutting down. Retry later.');
  await clock.advance(1000);
  await second;
  return counted;
}

test('a client that goes away while it waits leaves its place', async (t) => {
  t.deepEqual(await leaving(t, false), ['a0', 'a1', 'gone', 'next']);
  t.deepEqual(await leaving(t, true), ['a0', 'a1', 'next']);
});
