/** Whom a From field names; and what names nobody, or more than one, to any reader. */
import test from 'ava';
import fc from 'fast-check';
import { parseMailbox } from '../../src/mail/address.ts';
import { senderOf } from '../../src/smtp-in/submission/from-field.ts';
import { runs } from '../lab/runs.ts';
import { threadMs } from '../lab/thread-time.ts';

const read: Record<string, string> = {
  'a@b.invalid': 'a@b.invalid',
  '<a@b.invalid>': 'a@b.invalid',
  'Ann <a@b.invalid>': 'Ann <a@b.invalid>',
  'Ann Lee<a@b.invalid>': 'Ann Lee <a@b.invalid>',
  '"Lee, Ann" <a@b.invalid>': '"Lee, Ann" <a@b.invalid>',
  '"Ann" Lee <a@b.invalid>': 'Ann Lee <a@b.invalid>',
  '"A \\"B\\" C" <a@b.invalid>': '"A \\"B\\" C" <a@b.invalid>',
  '=?utf-8?Q?J=C3=BCrgen_=40_Acme?= <a@b.invalid>': '"Jürgen @ Acme" <a@b.invalid>',
  'Grüße <a@b.invalid>': 'Grüße <a@b.invalid>',
  'a@b.invalid (Ann)': 'a@b.invalid',
  'Ann (of (the) Acme) <a@b.invalid> (work)': 'Ann <a@b.invalid>',
  '"a b"@b.invalid': '"a b"@b.invalid',
  'X <"a@b"@b.invalid>': 'X <"a@b"@b.invalid>',
  '"evil@other.invalid" <a@b.invalid>': '"evil@other.invalid" <a@b.invalid>',
  '"<x@y.invalid>" <a@b.invalid>': '"<x@y.invalid>" <a@b.invalid>',
};

for (const [field, expected] of Object.entries(read)) {
  test(`From: ${field}`, (t) => {
    t.is(senderOf(field), expected);
  });
}

const refused = [
  '',
  'Ann',
  '<>',
  'a@b.invalid, c@d.invalid',
  'Ann <a@b.invalid>, Bob <c@d.invalid>',
  'c@d.invalid <a@b.invalid>',
  '<c@d.invalid> <a@b.invalid>',
  'Ann <a@b.invalid> c@d.invalid',
  'Friends: a@b.invalid;',
  '"Ann <a@b.invalid>',
  'Ann (a <a@b.invalid>',
  'Ann \\<a@b.invalid>',
  'a@b.invalid\0',
  'a@b.invalid@c.invalid',
  '<@c.invalid:a@b.invalid>',
  'a@localhost',
  'a b@c.invalid',
  '<a@b.invalid',
  'a@b.invalid>',
];

for (const field of refused) {
  test(`nobody: ${JSON.stringify(field)}`, (t) => {
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

test('it takes time in proportion to its length', (t) => {
  const started = threadMs();
  for (const piece of ['"', '(', '<', '\\', '""', '()', 'a@', ' ']) senderOf(piece.repeat(100_000));
  t.true(threadMs() - started < 2000);
});
