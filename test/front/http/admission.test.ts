import test from 'ava';
import { Admission } from '#front/http/admission.ts';
import { manualClock } from '#lab/clock.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';

const kib = 1024;
const mib = 1024 * kib;

test('when all slots are in use, one more send waits until a slot is released', async (t) => {
  const admission = new Admission(4, manualClock());
  const [first] = await Promise.all(['a', 'a', 'b', 'c'].map((org) => admission.acquire(org, 10)));
  let came = false;
  const next = admission.acquire('d', 10).then((place) => {
    came = true;
    return place;
  });
  await new Promise(setImmediate);
  t.false(came);
  first!.release();
  t.truthy(await next);
});

test('a send that has waited for three seconds is refused', async (t) => {
  const clock = manualClock();
  const admission = new Admission(2, clock);
  await Promise.all([admission.acquire('a', 1), admission.acquire('b', 1)]);
  const next = admission.acquire('c', 1);
  await clock.advance(2999);
  t.is(clock.pending.length, 1, 'still waiting');
  await clock.advance(1);
  t.is(await next, null);
});

test('no more sends wait than there are slots, and half of them at most belong to one organization', async (t) => {
  const admission = new Admission(4, manualClock());
  await Promise.all(['a', 'a', 'b', 'c'].map((org) => admission.acquire(org, 1)));
  for (const org of ['d', 'd']) admission.acquire(org, 1);
  t.is(await admission.acquire('d', 1), null);
  for (const org of ['e', 'f']) admission.acquire(org, 1);
  t.is(await admission.acquire('g', 1), null);
});

test('one organization has at most half of the slots', async (t) => {
  const clock = manualClock();
  const admission = new Admission(4, clock);
  const [first] = await Promise.all([admission.acquire('a', 1), admission.acquire('a', 1)]);
  const third = admission.acquire('a', 1);
  t.truthy(await admission.acquire('b', 1), 'nobody waits behind it');
  first!.release();
  t.truthy(await third);
});

test('the more organizations hold slots, the fewer each can have, and the next one always gets a slot', async (t) => {
  const admission = new Admission(64, manualClock());
  const held: Record<string, number> = {};
  for (const org of ['a', 'b', 'c', 'd', 'e']) {
    const asked = Array.from({ length: 64 }, () => admission.acquire(org, 0));
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

/** Adds bytes in chunks of 64 KiB until a chunk has to wait. */
function read(place: ByteHold, bytes: number): { read: number; next: Promise<boolean> | null } {
  for (let done = 0; done < bytes; done += 64 * kib) {
    const next = place.add(64 * kib);
    if (next !== true) return { read: done, next };
  }
  return { read: bytes, next: null };
}

test('bytes count when they arrive: a client that announces much and sends little holds little', async (t) => {
  const admission = new Admission(100, manualClock());
  for (const org of ['a', 'b', 'c'])
    for (let n = 0; n < 10; n++) read((await admission.acquire(org, 0))!, 64 * kib);
  t.is(read((await admission.acquire('d', 0))!, 20 * mib).next, null);
});

test('large bodies leave as much free as one organization holds, and 8 MiB for small ones', async (t) => {
  const admission = new Admission(100, manualClock());
  const held: number[] = [];
  for (const org of ['a', 'b', 'c'])
    for (let n = 0, of = 0; n < 3; n++) {
      of += read((await admission.acquire(org, 0))!, 20 * mib).read;
      if (n === 2) held.push(Math.floor(of / mib));
    }
  t.deepEqual(held, [28, 14, 7]);
  const small = await Promise.all(Array.from({ length: 25 }, () => admission.acquire('a', 0)));
  t.true(small.every((place) => place!.add(64 * kib) === true));
});

test('a half-read body waits for older ones of its organization, and after the timeout the youngest is refused', async (t) => {
  const clock = manualClock();
  const admission = new Admission(100, clock);
  const [first, second, third] = [
    await admission.acquire('a', 0),
    await admission.acquire('a', 0),
    await admission.acquire('a', 0),
  ];
  t.is(read(first!, 12 * mib).next, null);
  t.is(read(second!, 12 * mib).next, null);
  const late = read(third!, 12 * mib).next!;
  await clock.advance(1000);
  const next = read(first!, 8 * mib).next!;
  await clock.advance(2000);
  t.is(await late, false);
  third!.release();
  t.is(await next, true);
  t.is(read(first!, 2 * mib).next, null);
  // One that goes away gives up what it waits for.
  const rest = read(second!, 8 * mib).next!;
  second!.release();
  t.is(await rest, false);
});
