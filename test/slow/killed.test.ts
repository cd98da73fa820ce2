/**
 * SIGKILL under load at every named step of accept and of record; scripts/soak.ts has the random moments. Promised: every email
 * that was answered 200 reaches the MX; a copy too many is flagged; nothing is told as delivered that the MX did not get; every
 * credit is accounted for. A send that had no answer may have been taken or not; sent again with its idempotency key, it is
 * taken once.
 */
import test, { type ExecutionContext } from 'ava';
import {
  assertPromises,
  type CrashScene,
  createCrashScene,
  drained,
  sendUntilGone,
  sendWithKey,
} from '#lab/crash-scene.ts';
import { kinds } from '#lab/database/databases.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { until } from '#lab/until.ts';
import type { FailpointName } from '#platform/base/failpoints.ts';

const senders = 8;

/** Not the first time, so that something has happened before. */
const nth = 10;

const killAt = (query: string) => ['--import', `${new URL('../lab/kill-at.ts', import.meta.url)}?${query}`];

/** In the order in which a mail comes by; null: the process is killed by what the MX is told. */
const steps: [name: string, step: FailpointName | null, script?: 'mail' | 'dot'][] = [
  ['before the commit', 'composed'],
  ['within the transaction of a send', 'accepting'],
  ['after the commit, before the answer', 'accepted'],
  ['after the answer', 'answered'],
  ['after MAIL', null, 'mail'],
  ['after the final dot, before its reply', null, 'dot'],
  ['after the reply, before it is recorded', 'attempted'],
  ['within the transaction of an outcome', 'recording'],
  ['after an outcome is recorded', 'recorded'],
];

for (const kind of kinds) {
  test(`${kind}: no email that was answered 200 is lost, at whichever step of its way the server is killed`, async (t) => {
    t.timeout(600_000);
    const around = await createCrashScene(t, kind);
    const promised: string[] = [];
    const unanswered: string[] = [];
    let postern: PosternProcess | undefined;
    t.teardown(() => postern?.end('SIGKILL'));
    // Each process puts right what the one before it left.
    for (const [name, step, phase] of steps) {
      postern = await startProcess(around.settings, step ? killAt(`step=${step}&nth=${nth}`) : []);
      around.mx.script = phase ? { [phase]: killer(postern.pid) } : {};
      const loads = loadAll(postern, around, name.replaceAll(/\W+/g, '-'), promised);
      await until(() => isGone(postern!), { what: `it to be killed ${name}` });
      unanswered.push(...(await loads));
    }
    around.mx.script = {};
    postern = await startProcess(around.settings);
    const replays = await repeatAll(t, around, postern, unanswered);
    t.true(replays > 0, 'after the commit, before the answer');
    t.true(replays < unanswered.length, 'before the commit');
    promised.push(...unanswered);
    await drained(around, promised);
    t.is(await postern.end('SIGTERM'), 0);
    await assertPromises(t, around);
  });

  test(`${kind}: no email that was answered 200 is lost if the next server is killed too, while it repairs what was under way`, async (t) => {
    t.timeout(600_000);
    const around = await createCrashScene(t, kind);
    const promised: string[] = [];
    const first = await startProcess(around.settings);
    t.teardown(() => first.end('SIGKILL'));
    around.mx.script = { dot: killer(first.pid) };
    await loadAll(first, around, 'first', promised);
    around.mx.script = {};
    for (const step of ['attempted', 'recording', 'recorded']) {
      const restart = startProcess(around.settings, killAt(`step=${step}&nth=1&from=start`));
      await t.throwsAsync(restart, { message: /^ended with null/ }, step);
    }
    const last = await startProcess(around.settings);
    t.teardown(() => last.end('SIGKILL'));
    await drained(around, promised);
    t.is(await last.end('SIGTERM'), 0);
    await assertPromises(t, around);
  });
}

/** A script of the MX that ends the process when it is asked for the nth time. */
function killer(pid: number) {
  let left = nth;
  return () => {
    left -= 1;
    if (left === 0) process.kill(pid, 'SIGKILL');
    return undefined;
  };
}

function isGone({ gone }: PosternProcess): Promise<boolean> {
  return Promise.race([gone.then(() => true), new Promise<false>((no) => setImmediate(no, false))]);
}

/** Returns how many had been taken. */
async function repeatAll(
  t: ExecutionContext,
  { db, key }: CrashScene,
  { url }: PosternProcess,
  unanswered: string[],
): Promise<number> {
  const taken = new Set<string>(await db('deliveries').pluck('recipient'));
  for (const to of unanswered) {
    const { status, headers } = await sendWithKey(url, key, to);
    t.deepEqual([to, status, headers.has('idempotent-replayed')], [to, 200, taken.has(to)]);
  }
  return unanswered.filter((to) => taken.has(to)).length;
}

function loadAll(postern: PosternProcess, { key }: CrashScene, name: string, promised: string[]) {
  return Promise.all(
    Array.from({ length: senders }, (_, sender) =>
      sendUntilGone(postern.url, key, `${name}-s${sender}`, promised),
    ),
  );
}
