import test from 'ava';
import { Slots } from '#platform/base/limits/slots.ts';

const taken = (free: unknown) => (typeof free === 'function' ? 'taken' : free);

test('the limit that is reached says whether others can still take a slot', (t) => {
  const slots = new Slots({ inAll: 3, ofOne: 2 });
  const first = slots.take('a');
  t.is(taken(slots.take('a')), 'taken');
  t.is(slots.take('a'), 'of one');
  t.is(taken(slots.take('b')), 'taken');
  t.is(slots.take('c'), 'in all');
  if (typeof first !== 'function') return t.fail();
  first();
  first();
  t.is(slots.taken.total, 2, 'a slot is freed once');
});

test('slots that are taken together wait for each other, and nobody else waits behind them', async (t) => {
  const slots = new Slots({ ofOne: 4 });
  const three = await slots.enter('a', { count: 3 });
  const order: string[] = [];
  const enter = async (name: string, owner: string, count: number) => {
    const free = await slots.enter(owner, { count });
    order.push(name);
    return free;
  };
  const two = enter('two', 'a', 2);
  const one = enter('one', 'a', 1);
  await enter('other', 'b', 4);
  t.deepEqual(order, ['other'], 'one came after two, although it would fit');
  three!();
  await Promise.all([two, one]);
  t.deepEqual(order, ['other', 'two', 'one']);
});

test('a wait that its signal ends leaves the line to those behind it', async (t) => {
  const slots = new Slots({ ofOne: 2 });
  await slots.enter('a');
  const gone = new AbortController();
  const two = slots.enter('a', { count: 2, signal: gone.signal });
  const one = slots.enter('a');
  gone.abort();
  t.is(await two, null);
  t.is(taken(await one), 'taken');
  t.is(slots.waiting.total, 0);
});
