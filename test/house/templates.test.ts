/** Templates are read as code is: in lines that fit a window. Biome formats the rest of src/, but not these. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const src = join(import.meta.dirname, '../../src');
const maxLength = 160;

test('lines of templates have at most 160 characters', (t) => {
  const templates = globSync('**/*.eta', { cwd: src }).sort();
  t.true(templates.length > 60);
  const long = templates.flatMap((file) =>
    readFileSync(join(src, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (line.length > maxLength ? [`${file}:${index + 1}: ${line.length}`] : [])),
  );
  t.deepEqual(long, []);
});
