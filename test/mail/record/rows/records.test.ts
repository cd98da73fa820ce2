/** A list of members converts rows to records and back. */
import test from 'ava';
import { flag, inColumn, json, number, orNull, records, text } from '#platform/database/engine/records.ts';

const people = records({
  id: text,
  isOperator: inColumn('operator', flag),
  tags: json<string[]>(),
  lastReply: orNull(json<object>()),
  createdAt: number,
});

test('a row becomes a record of the members, and nothing else', (t) => {
  const row = { id: 'a', operator: 1, tags: '["x"]', last_reply: null, created_at: 5, secret: 's' };
  t.deepEqual(people.read(row), { id: 'a', isOperator: true, tags: ['x'], lastReply: null, createdAt: 5 });
  t.deepEqual(people.read({ ...row, last_reply: '{"code":250}' }).lastReply, { code: 250 });
});

test('the members that are given become columns', (t) => {
  t.deepEqual(people.write({ id: 'a', tags: ['x'], lastReply: null, isOperator: undefined }), {
    id: 'a',
    tags: '["x"]',
    last_reply: null,
  });
  t.deepEqual(people.write({ lastReply: { code: 250 } }), { last_reply: '{"code":250}' });
  t.deepEqual(people.columns, ['id', 'operator', 'tags', 'last_reply', 'created_at']);
});
