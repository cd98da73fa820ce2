/** A stop while something that an operator began goes on: it is broken off, and what has a hand in the database is waited for. */
import test from 'ava';
import { createBackgroundJobs } from '#front/dashboard/background-job.ts';
import { createOperatorJobs } from '#front/dashboard/operator-jobs.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { manualClock } from '#lab/clock.ts';
import { oneKind } from '#lab/database/databases.ts';
import { openQueue } from '#lab/database/queue-rows.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createLog } from '#platform/base/log.ts';
import { loadConfig } from '#platform/settings/config.ts';

test('what goes on is told, and waited for; nothing is begun after it', async (t) => {
  const { promise: ending, resolve: end } = Promise.withResolvers<void>();
  let told = '';
  const runs = createBackgroundJobs<string, never, string>(
    manualClock(),
    async (asked, _, signal) => {
      signal.addEventListener('abort', () => {
        told = signal.reason.message;
      });
      await ending;
      return `${asked}, done`;
    },
    (error) => t.fail(`${error}`),
  );
  t.true(runs.start('one'));
  let stopped = false;
  const stop = runs.stop().then(() => {
    stopped = true;
  });
  t.is(told, 'Postern stops');
  await new Promise(setImmediate);
  t.false(stopped);
  end();
  await stop;
  t.is(runs.last()!.result, 'one, done');
  t.false(runs.start('two'));
  await runs.stop();
});

test('a stopped action ends after its current page; the rest is unchanged', async (t) => {
  const { db, add } = await openQueue(t, oneKind);
  for (let email = 0; email < 25; email++) await add(...Array.from({ length: 100 }, () => ({})));
  const troubles: string[] = [];
  const config = loadConfig({});
  const onError = (what: string, error: unknown) => troubles.push(`${what}: ${(error as Error).message}`);
  const desk = createOperatorJobs({ db, clock: manualClock(), config, onError, surroundings: {} });
  t.true(desk.queueActions.start({ action: 'cancel', selection: {}, reason: 'test', by: 'olga' }));
  await until(() => (desk.queueActions.last()!.progress?.changed ?? 0) >= 1000);
  await desk.stop();
  const { endedAt, result } = desk.queueActions.last()!;
  t.not(endedAt, null);
  t.is(result, null);
  t.deepEqual(troubles, [
    'a queue action failed; the mail that it did not reach is unchanged: Postern stops',
  ]);
  const canceled = await db('deliveries').where({ status: 'canceled' });
  // The page that was under way may have been the second.
  t.true([1000, 2000].includes(canceled.length), `${canceled.length}`);
});

test('the service stops while the doctor waits for an answer', async (t) => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  t.teardown(answer);
  let looks = 0;
  const freeBytes = async () => {
    looks++;
    await answered;
    return 1;
  };
  const nobody = { probes: ['there.invalid'], signedName: 'there.invalid', timeServers: [], blocklists: [] };
  const errors: unknown[] = [];
  const log = createLog(loadConfig({ POSTERN_LOG_LEVEL: 'silent' }));
  log.error = (...said: unknown[]) => void errors.push(said);
  const world = await startWorld(t, { overrides: { log, surroundings: { ...nobody, freeBytes } } });
  const browser = createBrowser(world);
  await setUp(browser, world);
  await browser.get('/dashboard/doctor');
  await browser.submit('/doctor', { domain: '' });
  await until(() => looks === 1);
  await world.stop();
  t.deepEqual(errors, [[{ err: new Error('Postern stops') }, 'the doctor failed']]);
});
