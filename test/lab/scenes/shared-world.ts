/** Not in world.ts, which scripts use too: only a test file can import AVA's hooks. */
import test from 'ava';
import { contextOfFile } from '../context-of-file.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

/** One world for all tests of a file, for each of which `asNewTenant` makes an organization. */
export function worldOfFile(options: WorldOptions = {}): () => World {
  const context = contextOfFile();
  let world: World | undefined;
  test.before(async () => {
    world = await startWorld(context, options);
  });
  return () => world!;
}
