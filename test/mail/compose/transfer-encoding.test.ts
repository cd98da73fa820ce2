import test from 'ava';
import fc from 'fast-check';
import { runs } from '#lab/runs.ts';
import { quotedPrintable } from '#mail/compose/transfer-encoding.ts';

test('quoted-printable decodes to the original, has lines of 76, and splits no character', (t) => {
  const unit = fc.constantFrom(
    'a',
    ' ',
    '\t',
    '=',
    '.',
    'é',
    '用',
    '😀',
    '\0',
    '\r\n',
    'x'.repeat(74),
    'y'.repeat(30),
  );
  const text = fc.array(unit, { maxLength: 40 }).map((units) => units.join(''));
  const property = fc.property(text, (given) => {
    const encoded = quotedPrintable(Buffer.from(given)).toString('latin1');
    for (const line of encoded.split('\r\n')) {
      t.true(line.length <= 76, line);
      t.regex(line, /^(?:[\t\x20-\x3c\x3e-\x7e]|=[0-9A-F]{2})*=?$/);
      t.notRegex(line, /[ \t]$/);
      t.notRegex(line, /^=[89AB]/);
    }
    const bytes = encoded
      .replaceAll('=\r\n', '')
      .replace(/=(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    t.is(Buffer.from(bytes, 'latin1').toString(), given);
  });
  fc.assert(property, { numRuns: runs(1000) });
});
