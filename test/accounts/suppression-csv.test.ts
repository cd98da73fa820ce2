/** Lists of suppressed addresses as CSV: what is written reads back, whatever is in it; what is read may come from anywhere. */
import test from 'ava';
import fc from 'fast-check';
import { csvText, unescapeFormula } from '#accounts/csv-text.ts';
import { csvHead, csvOf, ListError, readAddresses } from '#accounts/suppression-csv.ts';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';
import { table } from '#lab/table.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';

const read = async (text: string | Buffer, max?: number) =>
  (await readAddresses(Buffer.from(text), max)).addresses;

const lists: [name: string, text: string, addresses: string[]][] = table('accounts/suppression-lists');

for (const [name, text, addresses] of lists) {
  test(`read: ${name}`, async (t) => {
    t.deepEqual(await read(Buffer.from(text, name.startsWith('bytes') ? 'latin1' : 'utf8')), addresses);
  });
}

test('bad lines are left out and named with their numbers', async (t) => {
  const lists: [text: string | Buffer, addresses: string[], rejected: number, lines: number[]][] = [
    ['ann@a.org\n\nnobody\nbob@a.org\n@', ['ann@a.org', 'bob@a.org'], 2, [3, 5]],
    ['"ann@a.org","1\n2"\nnobody', ['ann@a.org'], 1, [3]],
    ['x@y\nann@a.org,x\nbob@\n', ['ann@a.org'], 2, [1, 3]],
    [`a@a.org\n${'x\n'.repeat(150)}`, ['a@a.org'], 150, Array.from({ length: 100 }, (_, at) => at + 2)],
    [Buffer.from('m\xFCller@a.org\nann@a.org', 'latin1'), ['ann@a.org'], 1, [1]],
    [`a@a.org\n${'x'.repeat(10_000)}`, ['a@a.org'], 1, [2]],
  ];
  for (const [text, addresses, rejected, lines] of lists) {
    const list = await readAddresses(Buffer.from(text));
    t.deepEqual([list.addresses, list.rejected], [addresses, rejected]);
    t.deepEqual(
      list.rejectedLines.map(({ line }) => line),
      lines,
    );
    t.true(list.rejectedLines.every(({ text: shown }) => shown.length <= 80));
  }
});

test('a list without an address, or that cannot be read, is a fault', async (t) => {
  const faults: [text: string, message: RegExp, lines: number[]][] = [
    ['email\nnobody\n@\n', /^no email address in line 2 \("nobody"\), line 3 \("@"\)$/, [2, 3]],
    [`x@y\n${'x\n'.repeat(9)}`, /line 5 \("x"\) and 5 more$/, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ['a@a.org\n"never closed\nb@a.org\n', /a quote .* is never closed/, []],
    [`a@a.org\n"${'x\n'.repeat(20_000)}`, /a quote .* is never closed/, []],
  ];
  for (const [text, message, lines] of faults) {
    const fault = await t.throwsAsync(() => read(text), { instanceOf: ListError, message });
    t.deepEqual(
      fault.lines.map(({ line }) => line),
      lines,
    );
  }
});

test('of a list of suppressions no more lines are read than the limit', async (t) => {
  t.is((await read('a@a.org\nb@a.org\nA@a.org\n', 2)).length, 2);
  await t.throwsAsync(() => read('a@a.org\nb@a.org\nc@a.org\n', 2), { message: /more than 2 addresses/ });
});

test('any bytes are read as a list, or named as a fault', async (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    fc.stringMatching(/^[ab@.,;"'\n\r\t#= ]{0,60}$/).map((text) => Buffer.from(text)),
  );
  await fc.assert(
    fc.asyncProperty(bytes, async (given) => {
      const addresses = await read(given).catch((error) => {
        if (error instanceof ListError) return [];
        throw error;
      });
      for (const address of addresses) if (domainOf(address) === null) throw new Error(address);
    }),
    { numRuns: runs(300) },
  );
  t.pass();
});

test('whatever is written reads back, and no cell is a formula', async (t) => {
  const local = fc.oneof(
    fc.stringMatching(/^[=+\-'#@a|!]{1,6}$/),
    fc.stringMatching(/^"[=,;' \-a#]{0,6}"$/),
    fc.string({ minLength: 1, maxLength: 12 }),
  );
  const address = local.map((text) => `${text}@a.org`).filter((text) => domainOf(text) !== null);
  const reason = fc.string({ maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(address, reason), { maxLength: 5 }), async (rows) => {
      const text = csvHead + csvOf(rows.map(([one, why]) => ({ address: one, reason: why, createdAt: 0 })));
      const cells = text.matchAll(/(?:^|,)"((?:[^"]|"")*)"/gm);
      for (const [, cell] of cells) if (/^[=+\-@\t\r]/.test(cell!)) throw new Error(`a formula: ${cell}`);
      const first = new Map([...rows].reverse().map(([one]) => [compareKey(one), one]));
      const expected = rows.map(([one]) => one).filter((one) => first.get(compareKey(one)) === one);
      t.deepEqual(await read(text), [...new Set(expected)]);
    }),
    { numRuns: runs(300) },
  );
});

test('a cell is no formula by a full-width sign or a semicolon either', (t) => {
  const cells = {
    '＝1+1': "'＝1+1",
    '＋1': "'＋1",
    '－1': "'－1",
    '＠x': "'＠x",
    'a;=1+1;b': "a;'=1+1;b",
    'a; @x': "a;' @x",
    'a;"=1': `a;'""=1`,
    'a\t+1': "a\t'+1",
    'a = 1, -2': 'a = 1, -2',
    'a;b': 'a;b',
  };
  for (const [text, cell] of Object.entries(cells)) {
    t.is(csvText([[text]]), `"${cell}"\r\n`);
    t.is(unescapeFormula(cell.replaceAll('""', '"')), text);
  }
});

test.serial('a list with too many bad lines is not read to its end', async (t) => {
  await costsAtMost(t, 1_000, async () => {
    const fault = await t.throwsAsync(readAddresses(Buffer.alloc(9_000_000, '{}\n'), 100_000));
    t.regex(fault!.message, /and at least 996 more$/);
  });
});
