/** Which mails are watched through greylisting, what is learned from them, and what they are told. */
import test from 'ava';
import type { Greylisting } from '#mail/queue/greylist.ts';
import { createGreylistObserver } from '#mail/record/greylist-observer.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import type { Attempt, Delivery, Verdict } from '#platform/values/glossary.ts';

const minute = 60_000;

function startWatch(known: Record<string, Greylisting> = {}) {
  const learned = new Map(Object.entries(known));
  const memory: PersistentCache<Greylisting> = {
    get: async (name) => learned.get(name) ?? null,
    set: async (name, value) => void learned.set(name, value),
  };
  const watch = createGreylistObserver(memory);
  const note = (id: string, attempts: number, endedAt: number, verdict: Partial<Verdict>) =>
    watch({ id, attempts } as Delivery, { destination: 'mx.example', endedAt, verdict } as Attempt);
  return { learned, note };
}

const greylisted = { outcome: 'deferred', category: 'greylisting' } as const;
const busy = { outcome: 'deferred', category: 'rate_limit' } as const;
const delivered = { outcome: 'delivered', category: null } as const;

test('a mail is followed from its first refusal to its success, whatever comes between', async (t) => {
  const { learned, note } = startWatch();
  t.is(await note('a', 0, 0, greylisted), null);
  t.is(await note('a', 1, minute, greylisted), null);
  t.is(await note('a', 2, 2 * minute, busy), null);
  t.is(await note('a', 3, 4 * minute, delivered), null);
  t.deepEqual(learned.get('mx.example'), { refusedAfterMs: minute, acceptedAfterMs: 4 * minute });
  t.is(await note('b', 0, 10 * minute, greylisted), 2 * minute + 10_000, 'the next mail is told');
});

test('the wait of each mail is counted from its own first refusal', async (t) => {
  const { learned, note } = startWatch();
  await note('a', 0, 0, greylisted);
  await note('b', 0, 10 * minute, greylisted);
  await note('b', 1, 11 * minute, delivered);
  await note('a', 1, 12 * minute, delivered);
  t.deepEqual(learned.get('mx.example'), { refusedAfterMs: 0, acceptedAfterMs: minute });
});

test('a mail whose first refusal was not seen teaches nothing and is told nothing', async (t) => {
  const known = { refusedAfterMs: minute, acceptedAfterMs: 4 * minute };
  const { learned, note } = startWatch({ 'mx.example': known });
  t.is(await note('a', 1, minute, greylisted), null);
  await note('a', 2, 2 * minute, delivered);
  await note('b', 0, 0, busy);
  await note('b', 1, 90_000, delivered);
  t.is(learned.get('mx.example'), known);
});
