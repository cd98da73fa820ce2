import test from 'ava';
import fc from 'fast-check';
import { createMemberLimit } from '../../src/api/json-members.ts';
import { runs } from '../lab/runs.ts';

const max = 10_000;

function isRefused(chunks: Buffer[]): boolean {
  const check = createMemberLimit();
  try {
    for (const chunk of chunks) check(chunk);
    return false;
  } catch {
    return true;
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
        let rest = Buffer.from(json + ','.repeat(more));
        const chunks = cuts.map((cut) => {
          const chunk = rest.subarray(0, cut);
          rest = rest.subarray(cut);
          return chunk;
        });
        if (isRefused([...chunks, rest]) !== refused) return false;
      }
      return true;
    }),
    { numRuns: runs(100) },
  );
  t.pass();
});

test('a list of bytes counts little, and no other list does', (t) => {
  const list = (element: string, separator: string) => `[${Array(20_000).fill(element).join(separator)}]`;
  const passes = (json: string) => createMemberLimit({ takesBytes: true })(Buffer.from(json));
  for (const separator of [',', ', ']) t.notThrows(() => passes(list('255', separator)));
  t.notThrows(() => passes(`{"content":${list('7', ',')}}`));
  for (const element of ['2555', '"a":1', '[1', '{}', '-1', 'null', '""'])
    t.throws(() => passes(list(element, ',')), { message: /members/ }, element);
  t.throws(() => passes(list('1', ',').repeat(50)), { message: /members/ });
});
