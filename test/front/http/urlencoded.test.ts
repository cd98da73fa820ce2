/** Forms are read as URLSearchParams reads them, and a large one holds up nobody. */
import test from 'ava';
import { decoded, fieldsIn } from '#front/http/urlencoded.ts';
import { stallsAtMost } from '#lab/cost.ts';

async function readForm(bytes: Buffer): Promise<[string, string][]> {
  const fields: [string, string][] = [];
  for await (const { name, value } of fieldsIn(bytes)) fields.push([name, await decoded(value)]);
  return fields;
}

test('fields, names without values, values without names, escapes that are none', async (t) => {
  const pieces = [
    'a',
    '=',
    '&',
    '%',
    '+',
    '%4',
    '%41',
    '%c3%A9',
    '%zz',
    '?',
    ' ',
    '%00',
    '%f0%9f%98%80',
    '%A9',
    '%26',
  ];
  let seed = 1;
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let n = 0; n < 2_000; n++) {
    const form = Array.from({ length: next(9) }, () => pieces[next(pieces.length)]).join('');
    t.deepEqual(await readForm(Buffer.from(form)), [...new URLSearchParams(`&${form}`)], form);
  }
  t.deepEqual(await readForm(Buffer.from('a=é%A9é')), [['a', 'é\uFFFDé']]);
});

test.serial('a field of megabytes', async (t) => {
  for (const piece of ['%5B', '+', '%', '%+', '%C3%A9', 'a']) {
    const form = Buffer.from(`a=${piece.repeat(3_000_000 / piece.length)}`);
    await stallsAtMost(t, 100, () => readForm(form), piece);
  }
});
