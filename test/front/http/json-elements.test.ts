import test from 'ava';
import fc from 'fast-check';
import { batchBody } from '#front/api/send/send-body.ts';
import { JsonElements, parseElements } from '#front/http/json-elements.ts';
import { cut } from '#lab/cut.ts';
import { runs } from '#lab/runs.ts';

/** Null: it is refused. */
async function elementsIn(chunks: Buffer[]): Promise<unknown[] | null> {
  const elements = new JsonElements(100, batchBody.limits);
  try {
    for (const chunk of chunks) elements.check(chunk);
    const found: unknown[] = [];
    const ranges = await elements.split(Buffer.concat(chunks));
    for await (const one of parseElements(ranges, 1_000_000)) found.push(one);
    return found;
  } catch {
    return null;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

test('the elements are those that a parser finds in the whole, wherever the chunks end and whatever is broken', async (t) => {
  const noise = fc.tuple(fc.nat(60), fc.constantFrom('', '', ',', '[', ']', '{', '}', '"', '\\', ' ', 'é'));
  const array = fc.array(fc.jsonValue(), { maxLength: 5 });
  const property = fc.asyncProperty(array, noise, fc.array(fc.nat(20)), async (values, [at, extra], cuts) => {
    const whole = JSON.stringify(values, null, at % 3);
    const text = whole.slice(0, at) + extra + whole.slice(at);
    const expected = parsed(text);
    const wanted = Array.isArray(expected) && expected.length > 0 ? expected : null;
    t.deepEqual(await elementsIn(cut(Buffer.from(text), cuts)), wanted, text);
  });
  await fc.assert(property, { numRuns: runs(300) });
});

test('too many elements are refused before the body has arrived', (t) => {
  const elements = new JsonElements(100, batchBody.limits);
  elements.check(Buffer.from(`[${'1,'.repeat(99)}1`));
  t.throws(() => elements.check(Buffer.from(',')), { message: /^The request is not valid\. / });
});
