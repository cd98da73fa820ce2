import test from 'ava';
import fc from 'fast-check';
import { substituteWith } from '#front/dialects/sendgrid/substitutions.ts';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';

/** The same with a regular expression: of tags that begin at one place, the longest. */
function expected(values: Record<string, string>, text: string): string {
  const tags = Object.keys(values)
    .filter((tag) => tag !== '')
    .sort((a, b) => b.length - a.length);
  if (tags.length === 0) return text;
  const pattern = tags.map((tag) => tag.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|');
  return text.replace(new RegExp(pattern, 'g'), (tag) => values[tag]!);
}

test('the first and longest tag is replaced at each place, and its value is not replaced again', (t) => {
  const word = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b', '-', '😀'), maxLength });
  const values = fc.dictionary(word(5), word(6), { maxKeys: 6 });
  const property = fc.property(values, word(60), (given, text) => {
    t.is(substituteWith(given)(text), expected(given, text));
  });
  fc.assert(property, { numRuns: runs(2_000) });
});

const length = 500_000;
const near: Record<string, [tags: string[], text: string]> = {
  'the beginning of a long tag': [[`{{${'a'.repeat(5_000)}}}`], `{{${'a'.repeat(length)}`],
  'all of a long tag but its end': [[`${'a'.repeat(5_000)}b`], 'a'.repeat(length)],
  'all of a long tag but its beginning': [[`b${'a'.repeat(5_000)}`], 'a'.repeat(length)],
  'fifty tags that begin alike': [
    Array.from({ length: 50 }, (_, n) => 'ab'.repeat(50 + n) + n),
    'ab'.repeat(length / 2),
  ],
  'a tag at each position': [['a', `${'a'.repeat(5_000)}b`], 'a'.repeat(length)],
};

for (const [what, [tags, text]] of Object.entries(near)) {
  test(`a text that has at each position ${what}`, async (t) => {
    await costsAtMost(t, 150, () => substituteWith(Object.fromEntries(tags.map((tag) => [tag, 'x'])))(text));
  });
}
