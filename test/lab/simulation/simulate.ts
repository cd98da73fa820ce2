/** Replaces the rest of what is outside (machine/virtual-builtins.ts goes first), then runs a seed; a process can run several. */
import { replaceSqlite } from './machine/database.ts';
import { Names } from './machine/names.ts';
import { Network } from './machine/network.ts';
import { scheduler } from './machine/scheduler.ts';
import type { SharedPostgres } from './machine/shared-postgres.ts';
import { replaceThreads } from './machine/threads.ts';
import { seedRandomness } from './machine/virtual-builtins.ts';
import { replaceSockets } from './machine/virtual-sockets.ts';
import { drawPlan, type PlanItem, type PlanSize } from './plan.ts';
import { Random } from './random.ts';
import type { Result } from './run.ts';

export interface Simulated {
  seed: string;
  size: PlanSize;
  /** More than one needs PostgreSQL. */
  nodes: number;
  postgres: SharedPostgres | null;
  /** Leaves out items of the plan. */
  choose(plan: PlanItem[]): PlanItem[];
}

export async function simulate({ seed, size, nodes, postgres, choose }: Simulated): Promise<Result> {
  scheduler.reset(Number(seed));
  const { newId } = await import('#platform/base/id.ts');
  seedRandomness(seed, newId);
  const network = new Network();
  replaceSockets(network);
  const names = new Names(new Random(`${seed}/names`));
  names.replaceDns();
  replaceSqlite();
  await replaceThreads();
  const { run } = await import('./run.ts');
  const plan = choose(drawPlan(new Random(`${seed}/plan`), size, postgres ? 'postgres' : 'sqlite'));
  return run(seed, plan, { network, names, nodes, postgres });
}
