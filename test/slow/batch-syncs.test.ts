/** A batch is one commit on the disk: strace sees one sync of SQLite's log for a hundred sends. */
import { join } from 'node:path';
import { createCrashScene } from '#lab/crash-scene.ts';
import { startTracer, syncsIn } from '#lab/load/syncs.ts';
import { testWithProgram } from '#lab/needing.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { until } from '#lab/until.ts';

const count = 100;
const attachments = [{ filename: 'a.bin', content: Buffer.alloc(2000, 'a').toString('base64') }];

testWithProgram(isInstalled('strace'))(
  'sqlite: a batch of a hundred sends with attachments is one sync of the log',
  async (t) => {
    const { mx, db, key, settings } = await createCrashScene(t, 'sqlite');
    const server = await startProcess(settings);
    t.teardown(() => server.end('SIGTERM'));
    const send = async (name: string, fields: object) => {
      const response = await fetch(`${server.url}/api/public/email/batch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(
          Array.from({ length: count }, (_, n) => ({
            from: 'app@sender.invalid',
            to: `${name}${n}@there.invalid`,
            subject: 'Hello',
            text: 'Hello',
            attachments,
            ...fields,
          })),
        ),
      });
      const { results } = (await response.json()) as { results: { status: number }[] };
      t.true(results.every(({ status }) => status === 200));
    };
    // What the first use of a key and of connections writes is not the batch's.
    await send('warm', {});
    await until(() => mx.messages.length === count);
    await until(async () => (await db('deliveries').whereNot({ status: 'delivered' })).length === 0);

    const trace = join(settings.POSTERN_DATA_DIR!, 'trace');
    const tracer = await startTracer(server.pid, trace);
    t.teardown(() => tracer.stop());
    // Sent later, so that no delivery writes meanwhile. The server may publish its state during one of them, not during all.
    const syncs: number[] = [];
    for (const name of ['one', 'two', 'three']) {
      const before = syncsIn(trace);
      await send(name, { scheduledAt: new Date(Date.now() + 3_600_000).toISOString() });
      syncs.push(syncsIn(trace) - before);
    }
    t.is(Math.min(...syncs), 1, syncs.join(', '));
    t.is((await db('deliveries').where({ status: 'scheduled' })).length, 3 * count);
  },
);
