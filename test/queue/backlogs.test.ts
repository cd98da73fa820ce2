/** Whose turn it is: organizations one after the other, whatever each has waiting. */
import test from 'ava';
import { createBacklogs } from '../../src/queue/backlogs.ts';

const anything = () => true;
const names = (picks: { orgId: string; domain: string }[]) =>
  picks.map((one) => `${one.orgId}/${one.domain}`);

test('organizations take turns, and so do the domains of one', (t) => {
  const lanes = createBacklogs();
  for (const domain of ['a', 'b', 'c']) lanes.add({ orgId: 'big', domain });
  lanes.add({ orgId: 'small', domain: 'a' });
  t.deepEqual(names(lanes.pick(2, anything)), ['big/a', 'small/a']);
  t.deepEqual(names(lanes.pick(2, anything)), ['big/b', 'small/a']);
  t.deepEqual(names(lanes.pick(3, anything)), ['big/c', 'small/a', 'big/a']);
});

test('each lane is picked once in a round, and no more than there are', (t) => {
  const lanes = createBacklogs();
  lanes.add({ orgId: 'one', domain: 'a' });
  lanes.add({ orgId: 'one', domain: 'b' });
  lanes.add({ orgId: 'one', domain: 'a' });
  t.is(lanes.size, 2);
  t.deepEqual(names(lanes.pick(10, anything)).sort(), ['one/a', 'one/b']);
  t.deepEqual(createBacklogs().pick(10, anything), []);
});

test('a domain that is closed is passed over, and keeps nobody else back', (t) => {
  const lanes = createBacklogs();
  lanes.add({ orgId: 'one', domain: 'shut' });
  lanes.add({ orgId: 'one', domain: 'open' });
  lanes.add({ orgId: 'two', domain: 'shut' });
  t.deepEqual(names(lanes.pick(10, (domain) => domain === 'open')), ['one/open']);
});

test('an empty lane goes, unless something has come to wait there since it was picked', (t) => {
  const lanes = createBacklogs();
  lanes.add({ orgId: 'one', domain: 'a' });
  const [early] = lanes.pick(1, anything);
  lanes.add({ orgId: 'one', domain: 'a' });
  lanes.remove(early!);
  t.is(lanes.size, 1);
  const [late] = lanes.pick(1, anything);
  lanes.remove(late!);
  t.is(lanes.size, 0);
  t.deepEqual(lanes.pick(1, anything), []);
});

test('names are kept, mail is not: a hundred thousand lanes are picked from quickly and in turn', (t) => {
  const lanes = createBacklogs();
  for (let n = 0; n < 100_000; n++) lanes.add({ orgId: `org${n % 100}`, domain: `d${n}.invalid` });
  const picked = lanes.pick(200, anything);
  t.is(new Set(picked.map(({ orgId }) => orgId)).size, 100);
  t.is(picked.length, 200);
});
