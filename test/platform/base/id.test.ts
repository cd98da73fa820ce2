import test from 'ava';
import { validate, version } from 'uuid';
import { newId } from '#platform/base/id.ts';

test('ids are UUIDs of version 7 that sort in the order of creation', (t) => {
  const begun = Date.now();
  const ids = Array.from({ length: 10_000 }, newId);
  t.true(ids.every((id) => validate(id) && version(id) === 7));
  t.deepEqual([...ids].sort(), ids, 'also within a millisecond');
  t.is(new Set(ids.map((id) => id.slice(-11))).size, ids.length, 'their random parts differ');
  const at = Number.parseInt(ids[0]!.replaceAll('-', '').slice(0, 12), 16);
  t.true(at >= begun && at <= Date.now());
});
