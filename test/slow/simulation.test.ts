/** The whole service in virtual time (docs/simulation.md). A failure prints its seed, the story of its mail and the command. */
import test from 'ava';
import { runApart } from '../../scripts/simulate/many.ts';

const size = { hours: '0.5', mails: '20' };

test.serial('fifty seeds break no promise', async (t) => {
  t.timeout(900_000);
  const { runs, output } = await runApart(size, '1-50');
  const failed = runs.filter(({ failure }) => failure).map(({ seed }) => seed);
  t.deepEqual([failed, runs.length], [[], 50], output);
});

test.serial('a seed is the same run alone as after others', async (t) => {
  t.timeout(180_000);
  const { runs } = await runApart(size, '43-44');
  const alone = await runApart({ ...size, seed: '44' });
  t.is(runs.length, 2);
  t.is(alone.runs[0]!.fingerprint, runs[1]!.fingerprint);
});

test.serial('a planted fault is found, and its mail has a story', async (t) => {
  t.timeout(180_000);
  const { broken, output } = await runApart({ ...size, plant: 'deferrals are not counted' }, '1-20');
  t.is(broken, 'attemptsAreCounted', output);
  t.regex(output, /again: node scripts\/simulate\.ts --seed \d+/);
});

test.serial('two nodes on PostgreSQL break no promise, and make the same run again', async (t) => {
  t.timeout(600_000);
  const nodes = { nodes: '2', seed: '3', hours: '0.05', mails: '15', 'faults-per-hour': '60' };
  const [one, again] = [await runApart(nodes), await runApart(nodes)];
  t.is(one.broken, null, one.output);
  t.is(one.runs[0]!.fingerprint, again.runs[0]!.fingerprint);
});
