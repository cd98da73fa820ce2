/** A patch restores the exact copy, and is small if few bytes differ. */
import test from 'ava';
import fc from 'fast-check';
import { runs } from '#lab/runs.ts';
import { patched, patchedLength, patchOf } from '#platform/base/byte-patch.ts';

/** Few different values, so that equal bytes also occur by chance. */
const bytes = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 300 }).map((list) => Buffer.from(list));

test('a patch restores the copy, whatever base and copy are', (t) => {
  const property = fc.property(bytes, bytes, (base, copy) => {
    const patch = patchOf(base, copy);
    t.true(patched(base, patch).equals(copy));
    t.is(patchedLength(patch), copy.length);
  });
  fc.assert(property, { numRuns: runs(3000) });
});

test('a copy that differs in few bytes is a small patch, however long it is', (t) => {
  const base = Buffer.alloc(3_000_000, 'all of this is in every copy ');
  const copy = Buffer.from(base);
  for (const at of [0, 1, 4095, 4096, 70_000, 2_999_999]) copy[at] = 0;
  const patch = patchOf(base, copy);
  t.true(patch.length < 60, `${patch.length} bytes`);
  t.true(patched(base, patch).equals(copy));
  t.true(patched(base, patchOf(base, base)).equals(base));
});

test('a patch that was not made for this base is refused', (t) => {
  const base = Buffer.from('a base of some length');
  const patch = patchOf(base, Buffer.from('A base of some lengtH'));
  for (let end = 0; end < patch.length; end++) t.throws(() => patched(base, patch.subarray(0, end)));
  t.throws(() => patched(base.subarray(0, 5), patch));
});
