/** Organizations take turns by the cost of their orders. */
import test from 'ava';
import { FairTurns } from '#mail/compose/fair-turns.ts';

function filled(...list: [orgId: string, cost: number, count: number][]) {
  const turns = new FairTurns<string>();
  for (const [orgId, cost, count] of list)
    for (let n = 0; n < count; n++) turns.add({ orgId, cost, isLarge: cost > 100, item: orgId });
  return turns;
}

const takeAll = (turns: ReturnType<typeof filled>, isLarge = false) =>
  Array.from({ length: turns.count(isLarge) }, () => turns.take(isLarge)!.item).join('');

test('an organization with many orders does not hold up another; equal costs alternate', (t) => {
  t.is(takeAll(filled(['a', 10, 5], ['b', 10, 2])), 'ababaaa');
});

test('turns are equal in cost, not in number', (t) => {
  t.is(takeAll(filled(['a', 40, 3], ['b', 10, 8])), 'abbbbabbbba');
});

test('the cost of past orders counts as long as any order waits', (t) => {
  const turns = filled(['a', 50, 1], ['b', 10, 9]);
  t.is(turns.take(false)!.item, 'a');
  turns.add({ orgId: 'a', cost: 50, isLarge: false, item: 'a' });
  t.is(takeAll(turns), 'bbbbbabbbb');
});

test('an organization that comes later starts at the current virtual time', (t) => {
  const turns = filled(['a', 10, 20]);
  for (let n = 0; n < 10; n++) turns.take(false);
  for (let n = 0; n < 3; n++) turns.add({ orgId: 'b', cost: 10, isLarge: false, item: 'b' });
  t.regex(takeAll(turns), /^a?b/);
});

test('large orders are taken by themselves, and count in the same virtual time', (t) => {
  const turns = filled(['a', 1000, 2], ['a', 10, 2], ['b', 10, 2]);
  t.is(turns.countOf('a'), 4);
  t.is(turns.waitingOrgs('c'), 3);
  t.is(turns.take(true)!.item, 'a');
  t.is(takeAll(turns), 'bbaa');
  t.is(takeAll(turns, true), 'a');
  t.is(turns.take(false), null);
});

test('clear returns every order once', (t) => {
  const turns = filled(['a', 1000, 2], ['b', 10, 2]);
  t.deepEqual(turns.clear().sort(), ['a', 'a', 'b', 'b']);
  t.is(turns.count(true) + turns.count(false), 0);
  t.is(turns.take(true), null);
});
