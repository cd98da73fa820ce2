/** Not in world.ts, which scripts use too: only a test file can import AVA's hooks. */
import test, { type ExecutionContext } from 'ava';
import { startWorld, type World, type WorldOptions } from './world.ts';

/** One world for all tests of a file, for each of which `asNewTenant` makes an organization. */
export function worldOfFile(options: WorldOptions = {}): () => World {
  const steps: (() => unknown)[] = [];
  let world: World | undefined;
  test.before(async () => {
    const t = { teardown: (step: () => unknown) => steps.unshift(step) } as unknown as ExecutionContext;
    world = await startWorld(t, options);
  });
  test.after.always(async () => {
    for (const step of steps) await step();
  });
  return () => world!;
}
