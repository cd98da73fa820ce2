/** Whom a From field names; and what names nobody, or more than one, to any reader. */
import test from 'ava';
import fc from 'fast-check';
import { senderOf } from '#front/submission/from-field.ts';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';
import { column, table } from '#lab/table.ts';
import { parseMailbox } from '#platform/values/address.ts';

const read: Record<string, string> = Object.fromEntries(table('submission/sender-of-field'));

for (const [field, expected] of Object.entries(read)) {
  test(`From: ${field}`, (t) => {
    t.is(senderOf(field), expected);
  });
}

const refused = column('submission/no-sender');

for (const field of refused) {
  test(`From that names no sender: ${JSON.stringify(field)}`, (t) => {
    t.is(senderOf(field), null);
  });
}

test('whatever it says, what is read is one mailbox, and the last address that stands in it', (t) => {
  const token = fc.constantFrom(
    'a@b.invalid',
    'c@d.invalid',
    '<',
    '>',
    '"',
    '(',
    ')',
    '\\',
    ',',
    ' ',
    ':',
    ';',
    'Ann',
    '=?utf-8?q?=22?=',
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 12 }), (parts) => {
      const read = senderOf(parts.join(''));
      t.true(read === null || parseMailbox(read) !== null, read ?? '');
    }),
    { numRuns: runs(2000) },
  );
});

test('From is read in time proportional to its length', async (t) => {
  await costsAtMost(t, 2_000, () => {
    for (const piece of ['"', '(', '<', '\\', '""', '()', 'a@', ' ']) senderOf(piece.repeat(100_000));
  });
});
