/**
 * Three nodes on one PostgreSQL, killed under load and started again: every mail that was answered 200 arrives, a copy too
 * many is flagged, credits and the day's limit are exact. scripts/nodes.ts is the long form.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { setLimits } from '../../src/db/accounts/organizations.ts';
import { assertPromises, createCrashScene, drained, sendUntilGone } from '../lab/crash-scene.ts';
import { sharedSecret } from '../lab/scenes/nodes.ts';
import { type PosternProcess, startProcess } from '../lab/scenes/process.ts';
import { until } from '../lab/until.ts';

/** Of each node's load: nodes take their time to start again, and meanwhile the others should not send thousands. */
const restMs = 40;

test('three nodes, each killed in its turn: nothing is lost, and limits are exact', async (t) => {
  t.timeout(600_000);
  const around = await createCrashScene(t, 'postgres', sharedSecret);
  const { db, key } = around;
  const { id: orgId } = await db('organizations').first();
  const promised: string[] = [];
  const nodes: { running: PosternProcess; loads: Promise<unknown> }[] = [];
  t.teardown(() => Promise.all(nodes.map(({ running }) => running.end('SIGKILL'))));

  async function launch(index: number, life: number): Promise<void> {
    const POSTERN_DATA_DIR = join(around.settings.POSTERN_DATA_DIR!, `node${index}`);
    await mkdir(POSTERN_DATA_DIR, { recursive: true });
    const settings = { ...around.settings, POSTERN_DATA_DIR };
    const running = await startProcess(settings);
    nodes[index] = { running, loads: sendUntilGone(running.url, key, `n${index}l${life}`, promised, restMs) };
  }

  await Promise.all([0, 1, 2].map((index) => launch(index, 0)));
  for (const index of [0, 1, 2]) {
    const before = promised.length;
    await until(() => promised.length > before + 20, { timeout: 120_000, what: 'the load to go on' });
    await nodes[index]!.running.end('SIGKILL');
    await nodes[index]!.loads;
    await launch(index, 1);
  }
  const count = async () => Number((await db('deliveries').count('* as n').first())!.n);
  // More than is sent before all nodes know of it.
  const max = (await count()) + 250;
  await setLimits(db, orgId, { emailsPerDay: max });
  await until(async () => (await count()) >= max, { timeout: 120_000, what: 'the limit to be reached' });
  await drained(around, promised);
  t.is(await count(), max, 'the limit of the day is exact over the nodes');
  for (const { running, loads } of nodes) {
    t.is(await running.end('SIGTERM'), 0);
    await loads;
  }
  t.is(await count(), max);
  await assertPromises(t, around);
});
