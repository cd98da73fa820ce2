/** Which backlog is served next: organizations take turns, however much mail each has waiting. */
import test from 'ava';
import { Backlogs } from '#mail/queue/backlogs.ts';

const anything = () => true;
const names = (picks: { orgId: string; domain: string }[]) =>
  picks.map((one) => `${one.orgId}/${one.domain}`);

test('organizations take turns, and so do the domains of one', (t) => {
  const backlogs = new Backlogs();
  for (const domain of ['a', 'b', 'c']) backlogs.add({ orgId: 'big', domain });
  backlogs.add({ orgId: 'small', domain: 'a' });
  t.deepEqual(names(backlogs.pick(2, anything)), ['big/a', 'small/a']);
  t.deepEqual(names(backlogs.pick(2, anything)), ['big/b', 'small/a']);
  t.deepEqual(names(backlogs.pick(3, anything)), ['big/c', 'small/a', 'big/a']);
});

test('each backlog is picked at most once in a round', (t) => {
  const backlogs = new Backlogs();
  backlogs.add({ orgId: 'one', domain: 'a' });
  backlogs.add({ orgId: 'one', domain: 'b' });
  backlogs.add({ orgId: 'one', domain: 'a' });
  t.is(backlogs.size, 2);
  t.deepEqual(names(backlogs.pick(10, anything)).sort(), ['one/a', 'one/b']);
  t.deepEqual(new Backlogs().pick(10, anything), []);
});

test('a domain that may not be served is skipped and blocks no other', (t) => {
  const backlogs = new Backlogs();
  backlogs.add({ orgId: 'one', domain: 'shut' });
  backlogs.add({ orgId: 'one', domain: 'open' });
  backlogs.add({ orgId: 'two', domain: 'shut' });
  t.deepEqual(names(backlogs.pick(10, (domain) => domain === 'open')), ['one/open']);
});

test('an empty backlog is removed, unless mail was added after it was picked', (t) => {
  const backlogs = new Backlogs();
  backlogs.add({ orgId: 'one', domain: 'a' });
  const [early] = backlogs.pick(1, anything);
  backlogs.add({ orgId: 'one', domain: 'a' });
  backlogs.remove(early!);
  t.is(backlogs.size, 1);
  const [late] = backlogs.pick(1, anything);
  backlogs.remove(late!);
  t.is(backlogs.size, 0);
  t.deepEqual(backlogs.pick(1, anything), []);
});

test('a hundred thousand backlogs are picked from quickly and in turn', (t) => {
  const backlogs = new Backlogs();
  for (let n = 0; n < 100_000; n++) backlogs.add({ orgId: `org${n % 100}`, domain: `d${n}.invalid` });
  const picked = backlogs.pick(200, anything);
  t.is(new Set(picked.map(({ orgId }) => orgId)).size, 100);
  t.is(picked.length, 200);
});
