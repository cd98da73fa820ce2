/** The private parts of zod are still what src/platform/vendor/zod.ts expects. */
import test from 'ava';
import { z } from 'zod';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import { evenIfRefused, expectedBy } from '#platform/vendor/zod.ts';

const file = 'src/platform/vendor/zod.ts';

test('zod is pinned to the version that was read', (t) => checkVersion(t, 'zod', file));

test('a check runs although a member was refused, and not on what is no object', (t) =>
  checkPart(t, 'the option `when` of a zod check', file, async () => {
    const refuse = z.check<{ a: string }>(({ value, issues }) => {
      issues.push({ code: 'custom', path: ['b'], message: 'refused', input: value });
    });
    const schema = z.object({ a: z.string() }).check(evenIfRefused(refuse));
    const paths = (value: unknown) => schema.safeParse(value).error!.issues.map(({ path }) => path.join());
    return paths({ a: 1 }).join() === 'a,b' && paths(1).join() === '';
  }));

test('the words of a check can be read from its schema', (t) =>
  checkPart(t, 'the list of checks of a zod schema', file, async () => {
    const schema = z.string().refine(() => true, { params: { expected: 'a word' } });
    return expectedBy(schema).join() === 'a word';
  }));
