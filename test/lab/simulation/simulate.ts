/** Replaces the rest of what is outside (virtual-builtins.ts goes first), then runs a seed; a process can run several. */
import { replaceSqlite } from './database.ts';
import { Names } from './names.ts';
import { Network } from './network.ts';
import { drawPlan, type PlanItem, type PlanSize } from './plan.ts';
import { Random } from './random.ts';
import type { Result } from './run.ts';
import { scheduler } from './scheduler.ts';
import { replaceThreads } from './threads.ts';
import { seedRandomness } from './virtual-builtins.ts';
import { replaceSockets } from './virtual-sockets.ts';

export async function simulate(
  seed: string,
  size: PlanSize,
  choose = (plan: PlanItem[]) => plan,
): Promise<Result> {
  scheduler.reset(Number(seed));
  seedRandomness(seed);
  const network = new Network();
  replaceSockets(network);
  const names = new Names(new Random(`${seed}/names`));
  names.replaceDns();
  replaceSqlite();
  await replaceThreads();
  const { run } = await import('./run.ts');
  const plan = choose(drawPlan(new Random(`${seed}/plan`), size));
  return run(seed, plan, { network, names });
}
