/** What a gauge makes of what other nodes have learned of the same destination. */
import test from 'ava';
import type { Signal } from '../../src/glossary.ts';
import { mergePeerState, toPeerState } from '../../src/queue/peer-state.ts';
import { afterAttempt, type ConcurrencyState, newConcurrencyState } from '../../src/queue/shaping.ts';
import { defaultShape } from '../../src/settings/shaping-rules.ts';

const shape = defaultShape(20);

const see = (gauge: ConcurrencyState, signal: Signal, inUse: number, now: number) =>
  afterAttempt(gauge, shape, { signal, inUse, isFull: true, reason: 'the trouble' }, now);

const hear = (gauge: ConcurrencyState, from: ConcurrencyState) =>
  mergePeerState(gauge, shape, toPeerState(from, 0));

const fail = (times: number, now: number, gauge = newConcurrencyState(shape)): ConcurrencyState =>
  times === 0 ? gauge : fail(times - 1, now, see(gauge, 'dead', 1, now));

test('what went well for one is allowed for all', (t) => {
  const grown = { ...newConcurrencyState(shape), limit: 12 };
  t.is(hear(newConcurrencyState(shape), grown).limit, 12);
  t.is(hear(grown, newConcurrencyState(shape)).limit, 12);
});

test('a slowing down that one has met holds for all, rest and hold included', (t) => {
  const [a, b] = [
    { ...newConcurrencyState(shape), limit: 12 },
    { ...newConcurrencyState(shape), limit: 12 },
  ];
  const slowed = see(a, 'busy', 6, 1000);
  const heard = hear(b, slowed);
  t.is(heard.limit, 5);
  t.deepEqual(heard.ceiling, slowed.ceiling);
  t.is(heard.busySince, 1000);
  t.is(hear(slowed, b).limit, 5, 'and is not undone by what the others knew before');
  const resting = see({ ...newConcurrencyState(shape), limit: 1 }, 'busy', 1, 1000);
  t.is(hear(newConcurrencyState(shape), resting).nextStartAt, resting.nextStartAt);
});

test('the larger limit that has gone well since then is for all again', (t) => {
  const slowed = see({ ...newConcurrencyState(shape), limit: 12 }, 'busy', 6, 1000);
  const later = see(slowed, 'well', 5, slowed.ceiling!.until);
  t.is(later.limit, 6);
  t.is(hear(slowed, later).limit, 6);
});

test('a circuit that one has opened is open for all, but for who has had an answer since', (t) => {
  const open = fail(5, 1000);
  t.deepEqual(hear(newConcurrencyState(shape), open).circuit, open.circuit);
  t.deepEqual(hear(see(newConcurrencyState(shape), 'well', 1, 900), open).circuit, open.circuit);
  t.is(hear(see(newConcurrencyState(shape), 'well', 1, 1100), open).circuit, null);
});

test('an answer to one closes it for all, and what was said before does not open it again', (t) => {
  const open = fail(5, 1000);
  const other = hear({ ...newConcurrencyState(shape), limit: 20 }, open);
  const answered = see(open, 'well', 1, 16_000);
  const closed = hear(other, answered);
  t.is(closed.circuit, null);
  t.true(closed.limit <= shape.startWith, 'it begins low');
  t.is(hear(closed, open).circuit, null);
  t.is(hear(closed, other).limit, closed.limit, 'nor is the limit of the time before it taken up');
});

test('the last probe that failed says when the next is due, whoever made it', (t) => {
  const open = fail(5, 1000);
  const other = hear(newConcurrencyState(shape), open);
  const failed = see({ ...open, circuit: { ...open.circuit!, probing: true } }, 'dead', 1, 16_000);
  t.is(hear(other, failed).circuit!.nextProbeAt, failed.circuit!.nextProbeAt);
  t.is(hear(other, failed).circuit!.failures, 6);
  t.is(hear(failed, other).circuit!.failures, 6);
});
