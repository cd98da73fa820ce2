/** How a concurrency state merges what other nodes have learned about the same destination. */
import test from 'ava';
import { mergePeerState, toPeerState } from '#mail/queue/peer-state.ts';
import { afterAttempt, type ConcurrencyState, newConcurrencyState } from '#mail/queue/shaping.ts';
import { defaultShape } from '#platform/settings/shaping-rules.ts';
import type { Signal } from '#platform/values/glossary.ts';

const shape = defaultShape(20);

const observe = (state: ConcurrencyState, signal: Signal, inUse: number, now: number) =>
  afterAttempt(state, shape, { signal, inUse, isFull: true, reason: 'connection refused' }, now);

const merge = (state: ConcurrencyState, from: ConcurrencyState) =>
  mergePeerState(state, shape, toPeerState(from, 0));

const fail = (times: number, now: number, state = newConcurrencyState(shape)): ConcurrencyState =>
  times === 0 ? state : fail(times - 1, now, observe(state, 'dead', 1, now));

test('a limit that worked for one node is allowed for all', (t) => {
  const grown = { ...newConcurrencyState(shape), limit: 12 };
  t.is(merge(newConcurrencyState(shape), grown).limit, 12);
  t.is(merge(grown, newConcurrencyState(shape)).limit, 12);
});

test('a request to slow down that one node has received holds for all, rest and hold included', (t) => {
  const [a, b] = [
    { ...newConcurrencyState(shape), limit: 12 },
    { ...newConcurrencyState(shape), limit: 12 },
  ];
  const slowed = observe(a, 'throttled', 6, 1000);
  const heard = merge(b, slowed);
  t.is(heard.limit, 5);
  t.deepEqual(heard.ceiling, slowed.ceiling);
  t.is(heard.busySince, 1000);
  t.is(merge(slowed, b).limit, 5, 'and older states of other nodes do not undo it');
  const resting = observe({ ...newConcurrencyState(shape), limit: 1 }, 'throttled', 1, 1000);
  t.is(merge(newConcurrencyState(shape), resting).nextStartAt, resting.nextStartAt);
});

test('a larger limit that has worked since then is allowed for all again', (t) => {
  const slowed = observe({ ...newConcurrencyState(shape), limit: 12 }, 'throttled', 6, 1000);
  const later = observe(slowed, 'working', 5, slowed.ceiling!.until);
  t.is(later.limit, 6);
  t.is(merge(slowed, later).limit, 6);
});

test('a circuit that one node has opened is open for all nodes that have had no answer since', (t) => {
  const open = fail(5, 1000);
  t.deepEqual(merge(newConcurrencyState(shape), open).circuit, open.circuit);
  t.deepEqual(merge(observe(newConcurrencyState(shape), 'working', 1, 900), open).circuit, open.circuit);
  t.is(merge(observe(newConcurrencyState(shape), 'working', 1, 1100), open).circuit, null);
});

test('an answer to one node closes the circuit for all, and older states do not open it again', (t) => {
  const open = fail(5, 1000);
  const other = merge({ ...newConcurrencyState(shape), limit: 20 }, open);
  const answered = observe(open, 'working', 1, 16_000);
  const closed = merge(other, answered);
  t.is(closed.circuit, null);
  t.true(closed.limit <= shape.startWith, 'the limit begins low');
  t.is(merge(closed, open).circuit, null);
  t.is(merge(closed, other).limit, closed.limit, 'nor is the earlier limit taken up');
});

test('the last failed probe of any node decides when the next is due', (t) => {
  const open = fail(5, 1000);
  const other = merge(newConcurrencyState(shape), open);
  const failed = observe({ ...open, circuit: { ...open.circuit!, probing: true } }, 'dead', 1, 16_000);
  t.is(merge(other, failed).circuit!.nextProbeAt, failed.circuit!.nextProbeAt);
  t.is(merge(other, failed).circuit!.failures, 6);
  t.is(merge(failed, other).circuit!.failures, 6);
});
