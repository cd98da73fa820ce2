/** Times as people read them. */
import test from 'ava';
import { ago, relative, span } from '#platform/base/span.ts';

test('a time that has passed and lies in the future reads as now; one that is to come is named', (t) => {
  const now = Date.UTC(2026, 0, 1);
  t.is(ago(now + 7_200_000, now), 'just now');
  t.is(ago(now - 7_200_000, now), '2 hours ago');
  t.is(relative(now + 7_200_000, now), 'in 2 hours');
  t.is(span(-7_200_000), '0 ms');
});
