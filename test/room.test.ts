import test from 'ava';
import { createRoom } from '../src/api/room.ts';
import { manualClock } from './helpers/clock.ts';

const mib = 1024 * 1024;

test('there is a place for so many, and one more waits until one leaves', async (t) => {
  const room = createRoom(4, manualClock());
  const [first] = await Promise.all(['a', 'a', 'b', 'b'].map((org) => room.enter(org, 10)));
  let came = false;
  const next = room.enter('c', 10).then((place) => {
    came = true;
    return place;
  });
  await new Promise(setImmediate);
  t.false(came);
  first!.leave();
  t.truthy(await next);
});

test('who has waited for three seconds is told that there is no place', async (t) => {
  const clock = manualClock();
  const room = createRoom(2, clock);
  await Promise.all([room.enter('a', 1), room.enter('b', 1)]);
  const next = room.enter('c', 1);
  await clock.advance(2999);
  t.is(clock.pending.length, 1, 'still waiting');
  await clock.advance(1);
  t.is(await next, null);
});

test('no more wait than there are places', async (t) => {
  const room = createRoom(2, manualClock());
  await Promise.all([room.enter('a', 1), room.enter('b', 1)]);
  room.enter('c', 1);
  room.enter('d', 1);
  t.is(await room.enter('e', 1), null);
});

test('one organization has half of the places at most', async (t) => {
  const clock = manualClock();
  const room = createRoom(4, clock);
  const [first] = await Promise.all([room.enter('a', 1), room.enter('a', 1)]);
  const third = room.enter('a', 1);
  t.truthy(await room.enter('b', 1), 'nobody waits behind it');
  first!.leave();
  t.truthy(await third);
});

test('bodies have 64 MiB together, one organization half of it', async (t) => {
  const room = createRoom(100, manualClock());
  const own = (await room.enter('a', 20 * mib))!;
  const second = room.enter('a', 20 * mib);
  const others = await Promise.all(['b', 'c'].map((org) => room.enter(org, 20 * mib)));
  t.true(others.every((place) => place !== null));
  const late = room.enter('d', 20 * mib);
  t.truthy(await room.enter('d', 1 * mib), 'a small one goes by');
  // The length had not been announced; now it is known.
  own.resize(1000);
  t.truthy(await second);
  others[0]!.leave();
  t.truthy(await late);
});
