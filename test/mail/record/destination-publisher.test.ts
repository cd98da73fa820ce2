/** The states of destinations that are saved: those in which something happens or is wrong, and only when they change. */
import test from 'ava';
import { ReadyQueue } from '#mail/queue/ready-queue.ts';
import { createDestinationPublisher } from '#mail/record/destination-publisher.ts';
import { defaultShape } from '#platform/settings/shaping-rules.ts';

const now = 1_800_000_000_000;
const minute = 60_000;

function scene({ keepMs = 0, repeatMs = Number.POSITIVE_INFINITY } = {}) {
  const saved: [string, boolean][] = [];
  const publisher = createDestinationPublisher({
    async saveStates(states) {
      for (const [name, state] of states) saved.push([name, state !== null]);
    },
    saveRoutes: async () => {},
    sockets: () => 0,
    keepMs,
    repeatMs,
  });
  const readyQueue = new ReadyQueue({ name: 'mx.there.invalid', shape: defaultShape(20) });
  const savedAt = async (at: number) => {
    await publisher.publish([readyQueue], at);
    return saved.splice(0).map(([, isKept]) => isKept);
  };
  return { readyQueue, savedAt };
}

function fail(readyQueue: ReadyQueue, at: number): void {
  readyQueue.attemptStarted(at);
  readyQueue.attemptFinished('dead', 'connection refused', at);
}

test('mail that only waits for its turn makes no state', async (t) => {
  const { readyQueue, savedAt } = scene();
  readyQueue.backlogs.add({ domain: 'there.invalid', orgId: 'org' });
  t.deepEqual(await savedAt(now), []);

  readyQueue.attemptStarted(now);
  t.deepEqual(await savedAt(now), [true]);
  readyQueue.attemptFinished('working', '250 OK', now);
  t.deepEqual(await savedAt(now), [true]);
  t.deepEqual(await savedAt(now + 10 * minute), []);
  t.deepEqual(await savedAt(now + 16 * minute), [false], 'forgotten after a quarter of an hour');
});

test('an open circuit is saved when it changes, and for other nodes again after a time', async (t) => {
  const { readyQueue, savedAt } = scene({ repeatMs: 20_000 });
  readyQueue.backlogs.add({ domain: 'there.invalid', orgId: 'org' });
  for (let failures = 0; failures < 5; failures++) fail(readyQueue, now);
  t.deepEqual(await savedAt(now), [true]);
  for (let second = 1; second < 20; second++) t.deepEqual(await savedAt(now + second * 1000), []);
  t.deepEqual(await savedAt(now + 20_000), [true]);
  fail(readyQueue, now + 21_000);
  t.deepEqual(await savedAt(now + 21_000), [true]);
});

test('a destination at rest has no state, after the time for which other nodes may want its last one', async (t) => {
  const { readyQueue, savedAt } = scene({ keepMs: minute });
  readyQueue.attemptStarted(now);
  readyQueue.attemptFinished('working', '250 OK', now);
  t.deepEqual(await savedAt(now), [true]);
  t.deepEqual(await savedAt(now + minute - 1), []);
  t.deepEqual(await savedAt(now + minute), [false]);
});
