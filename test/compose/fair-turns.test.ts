/** Whose order is next: organizations take turns by the cost of what they had. */
import test from 'ava';
import { createTurns } from '../../src/compose/fair-turns.ts';

function filled(...list: [orgId: string, cost: number, count: number][]) {
  const turns = createTurns<string>();
  for (const [orgId, cost, count] of list)
    for (let n = 0; n < count; n++) turns.add({ orgId, cost, isLarge: cost > 100, item: orgId });
  return turns;
}

const takeAll = (turns: ReturnType<typeof filled>, isLarge = false) =>
  Array.from({ length: turns.count(isLarge) }, () => turns.take(isLarge)!.item).join('');

test('one of many orders does not hold up another, and equal ones alternate', (t) => {
  t.is(takeAll(filled(['a', 10, 5], ['b', 10, 2])), 'ababaaa');
});

test('turns are of equal cost, not of equal number', (t) => {
  t.is(takeAll(filled(['a', 40, 3], ['b', 10, 8])), 'abbbbabbbba');
});

test('what an organization had counts as long as anybody waits', (t) => {
  const turns = filled(['a', 50, 1], ['b', 10, 9]);
  t.is(turns.take(false)!.item, 'a');
  turns.add({ orgId: 'a', cost: 50, isLarge: false, item: 'a' });
  t.is(takeAll(turns), 'bbbbbabbbb');
});

test('one that comes later begins where the others are', (t) => {
  const turns = filled(['a', 10, 20]);
  for (let n = 0; n < 10; n++) turns.take(false);
  for (let n = 0; n < 3; n++) turns.add({ orgId: 'b', cost: 10, isLarge: false, item: 'b' });
  t.regex(takeAll(turns), /^a?b/);
});

test('large orders are taken apart, and count in the same turns', (t) => {
  const turns = filled(['a', 1000, 2], ['a', 10, 2], ['b', 10, 2]);
  t.is(turns.countOf('a'), 4);
  t.is(turns.waitingOrgs('c'), 3);
  t.is(turns.take(true)!.item, 'a');
  t.is(takeAll(turns), 'bbaa');
  t.is(takeAll(turns, true), 'a');
  t.is(turns.take(false), null);
});

test('cleared, all are handed out once', (t) => {
  const turns = filled(['a', 1000, 2], ['b', 10, 2]);
  t.deepEqual(turns.clear().sort(), ['a', 'a', 'b', 'b']);
  t.is(turns.count(true) + turns.count(false), 0);
  t.is(turns.take(true), null);
});
