import test from 'ava';
import fc from 'fast-check';
import { jsonLimits } from '#front/http/body-limits.ts';
import { JsonCounter, type JsonLimits } from '#front/http/json-counter.ts';
import { cut } from '#lab/cut.ts';
import { runs } from '#lab/runs.ts';

const max = 10_000;
const plain = { ...jsonLimits({ members: max }), depth: Number.POSITIVE_INFINITY };

/** The refusal; null if there is none. */
function refusalOf(chunks: Buffer[], limits: JsonLimits): string | null {
  const counter = new JsonCounter(limits);
  try {
    for (const chunk of chunks) counter.check(chunk);
    return null;
  } catch (refusal) {
    return (refusal as Error).message;
  }
}

/** Counts commas and opening brackets outside strings. */
function membersOf(json: string): number {
  return json.replace(/"(?:[^"\\]|\\.)*"/gs, '').match(/[,[{]/g)?.length ?? 0;
}

test('only members outside strings are counted, wherever the chunks end', (t) => {
  const text = fc.string({ unit: fc.constantFrom('"', '\\', ',', '[', '{', 'a', 'é'), maxLength: 200 });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), fc.array(fc.nat(300)), (pairs, cuts) => {
      const json = JSON.stringify(pairs);
      const own = membersOf(json);
      for (const [more, refused] of [
        [max - own, false],
        [max - own + 1, true],
      ] as const) {
        const chunks = cut(Buffer.from(json + ','.repeat(more)), cuts);
        if ((refusalOf(chunks, plain) !== null) !== refused) return false;
      }
      return true;
    }),
    { numRuns: runs(100) },
  );
  t.pass();
});

/** The same, by what a parser makes of it: the first list or object that has more than `most`, or text that is longer. */
function exceeds(value: unknown, at: string[], most: Record<string, number>): boolean {
  const limit = most[at.join('.')] ?? Number.POSITIVE_INFINITY;
  if (typeof value === 'string') return JSON.stringify(value).length - 2 > limit;
  if (typeof value !== 'object' || value === null) return false;
  const inner = Array.isArray(value)
    ? value.map((one) => ['*', one] as const)
    : Object.entries(value).map(([name, one]) => [isNamed([...at, name], most) ? name : '*', one] as const);
  return inner.length > limit || inner.some(([name, one]) => exceeds(one, [...at, name], most));
}

function isNamed(path: string[], most: Record<string, number>): boolean {
  const text = path.join('.');
  return Object.keys(most).some((one) => one === text || one.startsWith(`${text}.`));
}

test('the limits of a list, an object and a text hold at their place, wherever the chunks end', (t) => {
  const most = { a: 2, 'a.*.b': 1, 'a.*': 3, 'b.*': 2, 'b.a': 3 };
  const limits = jsonLimits({ members: max, lists: most, texts: most });
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>(1, null, '', 'x', 'xyz', 'x\\"y', 'xyzxyz'),
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(name, tie('any'), { maxKeys: 4 }),
    ),
  }));
  const body = fc.dictionary(name, any, { maxKeys: 4 });
  const property = fc.property(
    body,
    fc.array(fc.nat(20)),
    fc.nat(2),
    fc.boolean(),
    (value, cuts, spaces, isEscaped) => {
      const json = JSON.stringify(value, null, spaces);
      const text = isEscaped ? json.replaceAll('"a":', '"\\u0061":') : json;
      const refused = refusalOf(cut(Buffer.from(text), cuts), limits) !== null;
      return refused === exceeds(value, [], most);
    },
  );
  fc.assert(property, { numRuns: runs(1_000) });
  t.pass();
});

const ofFiles = jsonLimits({
  members: 50_000,
  bytes: ['attachments.*.content', 'attachments.*.content.data'],
});
const passes = (json: string) => refusalOf([Buffer.from(json)], ofFiles) === null;
const listOf = (element: string, separator = ',') => `[${Array(60_000).fill(element).join(separator)}]`;

test('bytes count little where they are a file, and nowhere else', (t) => {
  for (const separator of [',', ', ', ',\n ']) {
    const bytes = listOf('255', separator);
    t.true(passes(`{"attachments":[{"content":${bytes}}]}`));
    t.true(passes(`{"attachments":[{"content":{"type":"Buffer","data":${bytes}}}]}`));
    for (const elsewhere of [
      bytes,
      `{"to":${bytes}}`,
      `{"content":${bytes}}`,
      `{"attachments":${bytes}}`,
      `{"attachments":[{"filename":${bytes}}]}`,
      `{"attachments":[{"content":[${bytes}]}]}`,
      `{"attachments":[{"content":{"type":${bytes}}}]}`,
      `{"attachments":{"content":${bytes}}}`,
      `{"a":{"attachments":[{"content":${bytes}}]}}`,
      `{"attachments":[{"content":1,"a":${bytes}}]}`,
    ])
      t.false(passes(elsewhere), elsewhere.slice(0, 60));
  }
  for (const element of ['"a"', '[]', '{}'])
    t.false(passes(`{"attachments":[{"content":${listOf(element)}}]}`), element);
  const fifty = Array(60).fill(`{"content":${listOf('1')}}`);
  t.false(passes(`{"attachments":[${fifty}]}`));
});

test('white space counts nothing', (t) => {
  t.true(passes(JSON.stringify({ a: Array(5_000).fill({ b: [1] }) }, null, 10)));
  t.true(passes(`{${' '.repeat(600_000)}"a"${'\n'.repeat(600_000)}:1}`));
});

test('levels, and names that are long or never end', (t) => {
  t.true(passes('['.repeat(100)));
  t.regex(refusalOf([Buffer.from('['.repeat(101))], ofFiles)!, /more than 100 levels/);
  t.true(passes(`{"attachments":[{"${'x'.repeat(1000)}":1}]}`));
  const endless = [Buffer.from('{"'), ...Array(300).fill(Buffer.alloc(1_000, 'x'))];
  t.regex(refusalOf(endless, ofFiles)!, /a text of more than 262,144 bytes\./);
});

test('names can be alike in any letter case', (t) => {
  const limits = jsonLimits({ members: max, lists: { Attachments: 1 }, anyCase: true });
  for (const name of ['Attachments', 'attachments', 'ATTACHMENTS'])
    t.regex(refusalOf([Buffer.from(`{"${name}":[1,2]}`)], limits)!, /more than 1 elements at Attachments\.$/);
});
