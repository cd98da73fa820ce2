import test from 'ava';
import { validate, version } from 'uuid';
import { newId } from '../../src/base/id.ts';

test('ids are UUIDs of version 7 that sort in the order of their making', (t) => {
  const begun = Date.now();
  const ids = Array.from({ length: 10_000 }, newId);
  t.true(ids.every((id) => validate(id) && version(id) === 7));
  t.deepEqual([...ids].sort(), ids, 'in the same millisecond too');
  t.is(new Set(ids.map((id) => id.slice(-11))).size, ids.length, 'what is random in them differs');
  const at = Number.parseInt(ids[0]!.replaceAll('-', '').slice(0, 12), 16);
  t.true(at >= begun && at <= Date.now());
});
