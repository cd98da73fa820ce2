/** The shaping rules of a running server follow the file; a bad file changes nothing and is reported once. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { createCurrentShaping } from '#platform/settings/current-shaping.ts';

test('the shaping file is read again when it changes, and the limits of the operator go before it', async (t) => {
  const path = join(await temporaryDirectory(t), 'shaping.jsonc');
  const write = (perMinute: unknown) =>
    writeFile(path, JSON.stringify({ rules: [{ domain: 'there.invalid', perMinute }] }));
  await write(600);
  const errors: unknown[] = [];
  const shaping = createCurrentShaping({ shapingFile: path, mtaPerDestination: 20 }, (_, error) =>
    errors.push(error),
  );
  const rate = () => shaping.destinationOf('there.invalid', ['mx.there.invalid']).shape.perMinute;
  const none = new Map<string, number>();
  t.is(rate(), 600);
  t.false(shaping.refresh(none), 'nothing has changed');
  await write(60);
  t.true(shaping.refresh(none));
  t.is(rate(), 60);
  await write('many');
  t.false(shaping.refresh(none));
  t.false(shaping.refresh(none));
  t.is(rate(), 60);
  t.regex(String(errors[0]), /rule 1, perMinute: "many" is not a number of mails/);
  t.is(errors.length, 1, 'reported once');
  await write(90);
  t.true(shaping.refresh(new Map([['there.invalid', 5]])));
  t.is(rate(), 5);
  t.false(shaping.refresh(new Map([['there.invalid', 5]])));
  t.true(shaping.refresh(new Map([['there.invalid', 100]])));
  t.is(rate(), 90, 'a limit never raises a rate');
  t.true(shaping.refresh(none));
  const alone = createCurrentShaping({ shapingFile: null, mtaPerDestination: 20 }, () => {});
  t.false(alone.refresh(none));
});
