/** Leaves out parts of the plan of a failing run for as long as the same promise is broken, and prints the shortest run. */
import { runApart } from './many.ts';
import { argumentsOf, type RunOptions } from './options.ts';

export async function shrink(options: RunOptions): Promise<boolean> {
  const whole = await runApart(options);
  if (whole.broken === null) {
    console.log('this run breaks nothing');
    return true;
  }
  const length = whole.runs[0]?.plan ?? 0;
  let kept = options.keep?.split(',').map(Number) ?? Array.from({ length }, (_, at) => at);
  let shortest = whole.output;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length; ) {
      const fewer = [...kept.slice(0, at), ...kept.slice(at + size)];
      if (fewer.length === 0) break;
      const { broken, output } = await runApart({ ...options, keep: fewer.join(',') });
      if (broken === whole.broken) {
        kept = fewer;
        shortest = output;
        console.log(`${kept.length} items of ${length}`);
      } else at += size;
    }
  }
  console.log(shortest);
  console.log(argumentsOf({ ...options, keep: kept.join(',') }).join(' '));
  return false;
}
