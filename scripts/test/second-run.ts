/**
 * Tells chance from a fault: the files of the tests that failed run once more, each alone in a process of its own. A test that
 * passes then is unstable. More failures than a few, a hook, or a process that crashed or hung are never put down to chance.
 */
import { randomUUID } from 'node:crypto';
import { type Counts, type Outcome, type Room, roomOf } from './rooms.ts';

/** .ci/run applies the same limit to both of its runs together. */
const maxFailures = 3;

export interface Judged {
  passed: number;
  failed: number;
  failedTests: string[];
  unstable: { name: string; title: string }[];
}

export type Run = (rooms: Room[], args: string[], output?: 'inherit' | 'ignore') => Promise<Outcome>;

interface FailedTest {
  name: string;
  room: string;
  title: string;
}

/** Returns the first run's counts, in which a test that passes the second time counts as passed. */
export async function judge(first: Counts, rooms: Room[], run: Run): Promise<Judged> {
  const unchanged = withoutSecondRun(first);
  const tests = first.failures.filter((one): one is FailedTest => one.title !== null);
  if (first.failed === 0 || first.failed > maxFailures || tests.length !== first.failed) return unchanged;
  const files = await filesOf(tests, rooms, run);
  if (files === null) return unchanged;
  const { counts } = await run([...new Set(files)].map(roomOf), ['--concurrency=1']);
  if (counts === null || counts.failures.some(({ title }) => title === null)) return unchanged;

  const keyOf = (test: { room: string; title: string | null }) => JSON.stringify([test.room, test.title]);
  const passed = new Set(counts.passedTests.map(keyOf));
  const keys = tests.map(({ title }, index) => keyOf({ room: roomOf(files[index]!).name, title }));
  const unstable = tests.filter((_, index) => passed.has(keys[index]!));
  const again = tests.filter((test) => !unstable.includes(test));
  // They passed the first time.
  const others = counts.failures.filter((failure) => !keys.includes(keyOf(failure)));
  return {
    passed: first.passed + unstable.length - others.length,
    failed: again.length + others.length,
    failedTests: [...again, ...others].map(({ name }) => name),
    unstable,
  };
}

export function withoutSecondRun({ passed, failed, failures }: Counts): Judged {
  return { passed, failed, failedTests: failures.map(({ name }) => name), unstable: [] };
}

/** AVA tells in which process a test ran. So where a room has several files, each says which tests it declares. */
async function filesOf(tests: FailedTest[], rooms: Room[], run: Run): Promise<string[] | null> {
  const roomsOfTests = tests.map((test) => rooms.find(({ name }) => name === test.room));
  const candidates = [...new Set(roomsOfTests.flatMap((room) => room?.files ?? []))];
  const noTest = `--match=${randomUUID()}`;
  const { counts } = await run(candidates.map(roomOf), [noTest], 'ignore');
  const files = tests.map(({ title }, index) =>
    roomsOfTests[index]?.files.find((file) =>
      counts?.declaredTests.some((one) => one.room === roomOf(file).name && one.title === title),
    ),
  );
  return files.some((file) => file === undefined) ? null : (files as string[]);
}
