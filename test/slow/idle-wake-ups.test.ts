/** How often the thread of an idle server wakes up: counted by the kernel, over seconds that are real. */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createMigrated } from '#lab/database/databases.ts';
import { startDns } from '#lab/dns/dns.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { wakeUps } from '#lab/load/processes.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { testSettings } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const seconds = 10;
/**
 * A poll, on SQLite without a statement, and two looks of the event loop's watch; a question to PostgreSQL, its answer, and what
 * it says of others. Twice as many as that with each timer at a time of its own.
 */
const max = { sqlite: 5, postgres: 8 };

for (const kind of ['sqlite', 'postgres'] as const) {
  test(`an idle server wakes up less than ${max[kind]} times a second, on ${kind}`, async (t) => {
    const dataDir = await temporaryDirectory(t);
    const database = await createMigrated(kind, dataDir);
    t.teardown(database.drop);
    const dns = await startDns({});
    t.teardown(() => dns.close());
    const where = { dataDir, databaseUrl: database.url, dns, mtaPort: 1 };
    const postern = await startProcess(testSettings(where, { POSTERN_LOG_LEVEL: 'info' }));
    t.teardown(() => postern.end('SIGKILL'));
    const wokenUp = () => wakeUps([postern.pid]).get(`${postern.pid}`)!;
    let perSecond = Number.POSITIVE_INFINITY;
    await until(
      async () => {
        const before = wokenUp();
        await sleep(seconds * 1000);
        perSecond = (wokenUp() - before) / seconds;
        return perSecond < max[kind];
      },
      { what: () => `a server that sleeps; it wakes up ${perSecond} times a second` },
    );
    t.pass();
  });
}
