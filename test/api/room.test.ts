import test from 'ava';
import { createAdmission, type Slot } from '../../src/api/admission.ts';
import { manualClock } from '../helpers/clock.ts';

const kib = 1024;
const mib = 1024 * kib;

test('there is a place for so many, and one more waits until one leaves', async (t) => {
  const room = createAdmission(4, manualClock());
  const [first] = await Promise.all(['a', 'a', 'b', 'c'].map((org) => room.enter(org, 10)));
  let came = false;
  const next = room.enter('d', 10).then((place) => {
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
  const room = createAdmission(2, clock);
  await Promise.all([room.enter('a', 1), room.enter('b', 1)]);
  const next = room.enter('c', 1);
  await clock.advance(2999);
  t.is(clock.pending.length, 1, 'still waiting');
  await clock.advance(1);
  t.is(await next, null);
});

test('no more wait than there are places, half of them of one organization', async (t) => {
  const room = createAdmission(4, manualClock());
  await Promise.all(['a', 'a', 'b', 'c'].map((org) => room.enter(org, 1)));
  for (const org of ['d', 'd']) room.enter(org, 1);
  t.is(await room.enter('d', 1), null);
  for (const org of ['e', 'f']) room.enter(org, 1);
  t.is(await room.enter('g', 1), null);
});

test('one organization has half of the places at most', async (t) => {
  const clock = manualClock();
  const room = createAdmission(4, clock);
  const [first] = await Promise.all([room.enter('a', 1), room.enter('a', 1)]);
  const third = room.enter('a', 1);
  t.truthy(await room.enter('b', 1), 'nobody waits behind it');
  first!.leave();
  t.truthy(await third);
});

test('the more organizations hold places, the fewer each of them has; there is one for the next', async (t) => {
  const room = createAdmission(64, manualClock());
  const held: Record<string, number> = {};
  for (const org of ['a', 'b', 'c', 'd', 'e']) {
    const asked = Array.from({ length: 64 }, () => room.enter(org, 0));
    await new Promise(setImmediate);
    held[org] = 0;
    for (const one of asked)
      void one.then((place) => {
        if (place) held[org]! += 1;
      });
    await new Promise(setImmediate);
  }
  t.deepEqual(held, { a: 32, b: 16, c: 8, d: 4, e: 2 });
});

/** Reads so much in chunks of 64 KiB, until a chunk has to wait. */
function read(place: Slot, bytes: number): { read: number; next: Promise<boolean> | null } {
  for (let done = 0; done < bytes; done += 64 * kib) {
    const next = place.add(64 * kib);
    if (next !== true) return { read: done, next };
  }
  return { read: bytes, next: null };
}

test('bytes count as they arrive: who announces much and sends little holds little', async (t) => {
  const room = createAdmission(100, manualClock());
  for (const org of ['a', 'b', 'c']) for (let n = 0; n < 10; n++) read((await room.enter(org, 0))!, 64 * kib);
  t.is(read((await room.enter('d', 0))!, 20 * mib).next, null);
});

test('large bodies leave as much free as one organization holds, and 8 MiB for small ones', async (t) => {
  const room = createAdmission(100, manualClock());
  const held: number[] = [];
  for (const org of ['a', 'b', 'c'])
    for (let n = 0, of = 0; n < 3; n++) {
      of += read((await room.enter(org, 0))!, 20 * mib).read;
      if (n === 2) held.push(Math.floor(of / mib));
    }
  t.deepEqual(held, [28, 14, 7]);
  const small = await Promise.all(Array.from({ length: 25 }, () => room.enter('a', 0)));
  t.true(small.every((place) => place!.add(64 * kib) === true));
});

test('a body half read waits for the older ones of its organization; in the end the youngest gives way', async (t) => {
  const clock = manualClock();
  const room = createAdmission(100, clock);
  const [first, second, third] = [
    await room.enter('a', 0),
    await room.enter('a', 0),
    await room.enter('a', 0),
  ];
  t.is(read(first!, 12 * mib).next, null);
  t.is(read(second!, 12 * mib).next, null);
  const late = read(third!, 12 * mib).next!;
  await clock.advance(1000);
  const next = read(first!, 8 * mib).next!;
  await clock.advance(2000);
  t.is(await late, false);
  third!.leave();
  t.is(await next, true);
  t.is(read(first!, 2 * mib).next, null);
  // One that goes away gives up what it waits for.
  const rest = read(second!, 8 * mib).next!;
  second!.leave();
  t.is(await rest, false);
});
