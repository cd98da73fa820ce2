/** How the concurrency state of a destination follows from each observation. */
import test from 'ava';
import {
  afterAttempt,
  afterStart,
  allowed,
  type ConcurrencyState,
  mayProbe,
  newConcurrencyState,
} from '#mail/queue/shaping.ts';
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import type { Signal } from '#platform/values/glossary.ts';

const shape: DestinationShape = {
  connections: 20,
  startWith: 4,
  perMinute: null,
  mailsPerConnection: 100,
  idleMs: 5000,
  tls: 'opportunistic',
};
const minute = 60_000;

function observe(state: ConcurrencyState, signal: Signal, inUse = 1, now = 0): ConcurrencyState {
  return afterAttempt(
    state,
    shape,
    { signal, inUse, isFull: inUse >= state.limit, reason: 'connection refused' },
    now,
  );
}

function fail(state: ConcurrencyState, times: number, now = 0): ConcurrencyState {
  return times === 0 ? state : fail(observe(state, 'dead', 1, now), times - 1, now);
}

test('the limit begins low', (t) => {
  t.is(newConcurrencyState(shape).limit, 4);
  t.is(newConcurrencyState({ ...shape, connections: 2 }).limit, 2);
});

test('the limit grows by one with each success while all of it is in use, up to the shape’s connections', (t) => {
  let state = newConcurrencyState(shape);
  state = observe(state, 'working', 4);
  t.is(state.limit, 5);
  state = observe(state, 'working', 3);
  t.is(state.limit, 5, 'what is not in use proves nothing');
  for (let n = 0; n < 50; n++) state = observe(state, 'working', state.limit);
  t.is(state.limit, 20);
});

test('a request to slow down sets the limit below what was in use, and at least to one', (t) => {
  t.is(observe({ ...newConcurrencyState(shape), limit: 10 }, 'throttled', 8).limit, 7);
  t.is(observe(newConcurrencyState(shape), 'throttled', 1).limit, 1);
});

test('a limit that proved too high is tried again after a minute, then after two, at most after half an hour', (t) => {
  let state = observe({ ...newConcurrencyState(shape), limit: 4 }, 'throttled', 4, 0);
  let now = 0;
  const holds: number[] = [];
  for (let n = 0; n < 7; n++) {
    const { until } = state.ceiling!;
    holds.push((until - now) / minute);
    t.is(observe(state, 'working', 3, until - 1).limit, 3);
    now = until;
    const raised = observe(state, 'working', 3, now);
    t.is(raised.limit, 4);
    state = observe(raised, 'throttled', 4, now);
    t.is(state.limit, 3);
  }
  t.deepEqual(holds, [1, 2, 4, 8, 16, 30, 30]);
});

test('one refusal of a number that worked before is taken for chance, a second soon after it is not', (t) => {
  const settled = observe({ ...newConcurrencyState(shape), limit: 4 }, 'throttled', 4, 0);
  const once = observe(settled, 'throttled', 3, 30_000);
  t.is(once.limit, 3);
  t.is(observe(once, 'throttled', 3, 31_000).limit, 2);
  t.is(observe(once, 'throttled', 3, 50_000).limit, 3);
});

test('several refusals at once end at the number that the host accepts', (t) => {
  // Ten connections, of which the other side takes three: seven are refused, one after the other.
  let state: ConcurrencyState = { ...newConcurrencyState(shape), limit: 10 };
  for (let inUse = 10; inUse > 3; inUse--) state = observe(state, 'throttled', inUse);
  t.is(state.limit, 3);
});

test('after a request to slow down with nothing else in use, the next start waits: two seconds, doubling to five minutes', (t) => {
  let state = newConcurrencyState(shape);
  const waits: number[] = [];
  let now = 0;
  for (let n = 0; n < 10; n++) {
    state = observe(state, 'throttled', 1, now);
    waits.push((state.nextStartAt - now) / 1000);
    now = state.nextStartAt;
  }
  t.deepEqual(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  state = observe(observe(state, 'working', 1, now), 'throttled', 1, now);
  t.is(state.nextStartAt - now, 2000, 'a success makes the next rest short again');
});

test('five failures in a row open the circuit; any answer between them starts the count again', (t) => {
  t.is(fail(newConcurrencyState(shape), 4).circuit, null);
  t.truthy(fail(newConcurrencyState(shape), 5).circuit);
  t.is(fail(observe(fail(newConcurrencyState(shape), 4), 'working'), 4).circuit, null);
  t.is(fail(observe(fail(newConcurrencyState(shape), 4), null), 4).circuit, null);
});

test('an open circuit lets one probe through at a time, later and later', (t) => {
  let state = fail(newConcurrencyState(shape), 5, 0);
  const waits: number[] = [];
  let now = 0;
  for (let n = 0; n < 7; n++) {
    const { nextProbeAt } = state.circuit!;
    waits.push((nextProbeAt - now) / 1000);
    t.is(allowed(state, nextProbeAt - 1), 0);
    t.is(allowed(state, nextProbeAt), 1);
    now = nextProbeAt;
    state = afterStart(state, null, now);
    t.is(allowed(state, now), 0, 'one at a time');
    state = observe(state, 'dead', 1, now);
  }
  t.deepEqual(waits, [15, 30, 60, 120, 240, 300, 300]);
});

test('attempts under way when the circuit opened do not delay the probe', (t) => {
  const opened = fail(newConcurrencyState(shape), 5, 0);
  t.is(observe(opened, 'dead', 1, 1000).circuit!.nextProbeAt, 16_000);
  t.is(observe(opened, 'dead', 1, 1000).circuit!.waitMs, 15_000);
});

test('a retry that falls due may probe, but not right after a failure, and not beside another probe', (t) => {
  const state = fail(newConcurrencyState(shape), 5, 0);
  t.false(mayProbe(state, 29_999));
  t.true(mayProbe(state, 30_000));
  t.false(mayProbe(afterStart(state, null, 30_000), 90_000));
  t.false(mayProbe(newConcurrencyState(shape), 90_000));
});

for (const signal of ['working', 'throttled', null] as const) {
  test(`a probe that is answered (${signal}) closes the circuit, and it begins low again`, (t) => {
    const open = fail({ ...newConcurrencyState(shape), limit: 20 }, 5);
    const state = observe(afterStart(open, null, 15_000), signal, 1, 15_000);
    t.is(state.circuit, null);
    t.true(state.limit <= shape.startWith);
  });
}

test('a rate is spread evenly over the minute, and unused starts do not add up', (t) => {
  const paced = { ...shape, perMinute: 60 };
  let state = newConcurrencyState(paced);
  const starts: number[] = [];
  for (let n = 0; n < 4; n++) {
    const now = Math.max(state.nextStartAt, 0);
    starts.push(now);
    state = afterStart(state, paced.perMinute, now);
  }
  t.deepEqual(starts, [0, 1000, 2000, 3000]);
  t.is(afterStart(state, paced.perMinute, 60_000).nextStartAt, 61_000);
});
