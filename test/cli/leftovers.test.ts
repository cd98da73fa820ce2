/** `postern leftovers`: what restores and upgrades keep in the data directory is listed, and removed if that is wanted. */
import { existsSync } from 'node:fs';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { createCli } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';

test('names what was kept, removes it after a yes, and leaves alone what is in use', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const { json, cli, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  t.deepEqual(await json('leftovers'), []);
  const kept = [
    'before-1.1.0.sqlite',
    'before-1.1.0.sqlite.secret',
    'postern.sqlite.replaced-2026-01-01T00-00-00-000Z',
  ];
  for (const name of [...kept, 'postern.sqlite', 'secret', 'before.txt'])
    await writeFile(join(dataDir, name), 'x');
  for (const name of ['restore-abc123', 'restore-def456']) {
    await mkdir(join(dataDir, name));
    await writeFile(join(dataDir, name, 'postern.sqlite'), 'xyz');
  }
  const longAgo = new Date(Date.now() - 3 * 86_400_000);
  await utimes(join(dataDir, 'restore-abc123'), longAgo, longAgo);

  const all = [...kept, 'restore-abc123'].map((name) => join(dataDir, name)).sort();
  const found: { path: string; bytes: number }[] = await json('leftovers');
  t.deepEqual(found.map(({ path }) => path).sort(), all);
  t.is(found.find(({ path }) => path.endsWith('restore-abc123'))!.bytes, 3);
  t.regex(
    await refusal(1, 'leftovers --remove'),
    /4 files and directories \(1 MB\)\? Nothing was changed; add --yes/,
  );
  t.true(existsSync(all[0]!));
  t.deepEqual((await json('leftovers --remove --yes')).removed.sort(), all);
  for (const path of all) t.false(existsSync(path), path);
  for (const name of ['postern.sqlite', 'secret', 'before.txt', 'restore-def456'])
    t.true(existsSync(join(dataDir, name)), name);
  t.is((await cli('leftovers')).code, 0);
});
