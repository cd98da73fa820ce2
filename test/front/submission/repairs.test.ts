/** Repairs of a header take time in proportion to its length, whatever it says, and what was repaired needs no repair. */
import test from 'ava';
import fc from 'fast-check';
import { readContent } from '#front/submission/message-rules.ts';
import { repaired } from '#front/submission/repairs.ts';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';

const pieces = [
  '"',
  '(',
  ')',
  '<',
  '>',
  ',',
  ';',
  ':',
  '\\',
  ' ',
  'a@',
  'a,',
  'a@b,',
  '<a>',
  '=?',
  '=?a?q?b?=',
  '""',
  '><',
];
const fields = ['From', 'To', 'Subject', 'Date', 'Message-ID', 'References', 'List-Unsubscribe', 'X-A'];

test('repairs take time in proportion to the length of the header', async (t) => {
  await costsAtMost(t, 6_000, () => {
    for (const piece of pieces) {
      const long = piece.repeat(Math.floor(95_000 / piece.length));
      for (const name of fields) repaired(Buffer.from(`${name}: ${long}\r\n\r\nx`));
    }
    for (const name of fields)
      repaired(Buffer.from(`${`${name}: Ann <a@b.invalid>, x${' '.repeat(150)}\r\n`.repeat(480)}\r\nx`));
    repaired(Buffer.from(`${`To: a@b.invalid, ${'c'.repeat(150)}@d.invalid\r\n`.repeat(480)}\r\nx`));
  });
});

test('an address list of one piece many times', async (t) => {
  await costsAtMost(t, 4_000, () => {
    for (const piece of pieces) readAddressList(piece.repeat(1_000_000 / piece.length));
  });
});

const part = fc.constantFrom(
  ...['From: ', 'To: ', 'Cc: ', 'Subject: ', 'Message-ID: ', 'Date: ', 'X : ', 'From '],
  ...[
    'a@b.invalid',
    'Doe, John ',
    '<a@b.invalid>',
    '"',
    ',',
    ';',
    ':',
    '(x)',
    '=?utf-8?q?=3Ca=40b=3E?=',
    'x'.repeat(1000),
  ],
  ...['\r\n', '\r\n', '\r\n ', ' ', '\x80', 'é'],
);

test('what was repaired needs no repair, and is read without a fault of ours', (t) => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const raw = Buffer.from(`${parts.join('')}\r\n\r\nHi\r\n`, 'latin1');
      const once = repaired(raw);
      t.deepEqual(
        // Nonsense in these may need another pass; one is made.
        repaired(once.raw).repairs.filter((name) => !['to', 'cc', 'from', 'mbox line'].includes(name)),
        [],
        once.raw.toString('latin1'),
      );
      try {
        readContent(once.raw, once.head);
      } catch (error) {
        t.regex((error as { code: string }).code, /^(BAD_REQUEST|VALIDATION_ERROR)$/);
      }
    }),
    { numRuns: runs(1000) },
  );
});
