/** The windows of an organization's request limits, as nodes whose clocks differ a little write them. */
import test from 'ava';
import { takeRequest } from '#accounts/limits.ts';

test('a request by a clock that is a little behind is in the window that is open', (t) => {
  const limits = { perSecond: 2, perDay: null };
  let usage = { requests: 0, secondSince: 0, secondRequests: 0 };
  const take = (now: number) => {
    const taken = takeRequest(usage, limits, now);
    ({ usage } = taken);
    return taken.allowed;
  };
  t.deepEqual([100_000, 99_995, 99_990, 100_999].map(take), [true, true, false, false]);
  t.true(take(101_000), 'the next window');
  t.true(take(50_000), 'a clock that is set back by more than a window begins anew');
});
