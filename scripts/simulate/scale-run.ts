/** The process of the model: runs the layouts of its argument, one after the other, and prints the figures of each as JSON. */
import { replaceBuiltins } from '#lab/simulation/machine/virtual-builtins.ts';
import type { Costs } from './scale-costs.ts';
import type { Layout } from './scale-model.ts';

const { costs, layouts } = JSON.parse(process.argv[2]!) as { costs: Costs; layouts: Layout[] };
replaceBuiltins();
const { runModel } = await import('./scale-model.ts');
for (const layout of layouts) console.log(JSON.stringify(await runModel(costs, layout)));
process.exit(0);
