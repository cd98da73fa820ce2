/** `orAborted` leaves no listener on the signal, which may live as long as the program, and no unhandled rejection. */
import { getEventListeners } from 'node:events';
import test from 'ava';
import { orAborted } from '#platform/base/waits.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a wait ends with the promise or the signal, whichever is first', async (t) => {
  const ending = new AbortController();
  t.is(await orAborted(Promise.resolve('here'), ending.signal), 'here');
  await t.throwsAsync(orAborted(Promise.reject(new Error('not here')), ending.signal), {
    message: 'not here',
  });
  const waiting = orAborted(new Promise(() => {}), ending.signal);
  ending.abort(new Error('over'));
  await t.throwsAsync(waiting, { message: 'over' });
});

test('no listener stays on the signal', async (t) => {
  const { signal } = new AbortController();
  for (let times = 0; times < 100; times++) await orAborted(Promise.resolve(), signal);
  await turn();
  t.deepEqual(getEventListeners(signal, 'abort'), []);
});

test('a promise that rejects after the signal is no unhandled rejection', async (t) => {
  const late = Promise.withResolvers<never>();
  await t.throwsAsync(orAborted(late.promise, AbortSignal.abort(new Error('over'))), { message: 'over' });
  late.reject(new Error('late'));
  // An unhandled rejection would be reported before the next turn, and fail the run.
  await turn();
  t.pass();
});
