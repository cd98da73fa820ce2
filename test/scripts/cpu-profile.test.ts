/** The bench's reading of a CPU profile: whose behalf time was spent on, from when on, and without idle time. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { readProfiles } from '#lab/load/cpu-profile.ts';

const frame = (functionName: string, url = '', lineNumber = 0) => ({ functionName, url, lineNumber });

/** accept → (mailauth → crypto's sign); and Node's own timers; a tenth of a second for each sample. */
const profile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 6, 7] },
    { id: 2, callFrame: frame('accept', 'file:///srv/postern/src/mail/accept/accept.ts', 9), children: [3] },
    {
      id: 3,
      callFrame: frame('dkimSign', 'file:///srv/node_modules/mailauth/lib/dkim/sign.js', 20),
      children: [4],
    },
    { id: 4, callFrame: frame('signOneShot', 'node:internal/crypto/sig', 157), children: [5] },
    { id: 5, callFrame: frame('writeBuffer') },
    { id: 6, callFrame: frame('(idle)') },
    { id: 7, callFrame: frame('listOnTimeout', 'node:internal/timers', 500) },
  ],
  startTime: 5_000_000,
  samples: [2, 2, 3, 4, 5, 6, 7],
  timeDeltas: [0, 100_000, 100_000, 100_000, 100_000, 100_000, 100_000, 100_000],
};

async function directoryWith(t: ExecutionContext, ...profiles: object[]): Promise<string> {
  const directory = await temporaryDirectory(t);
  for (const [index, one] of profiles.entries())
    await writeFile(join(directory, `${index}.cpuprofile`), JSON.stringify(one));
  return directory;
}

test('what Node does for somebody is theirs; idle time is nobody’s', async (t) => {
  const hot = await readProfiles(await directoryWith(t, profile), 0n);
  const shares = Object.fromEntries(hot.behalf.map(({ what, ms }) => [what, Math.round(ms)]));
  t.like(shares, { mailauth: 300, 'src/mail/accept/accept.ts': 200, node: 100 });
  t.is(Math.round(hot.busyMs), 600);
  t.is(hot.behalf[0]!.what, 'mailauth');
  t.true(hot.functions.some(({ what }) => what === 'signOneShot  node:internal/crypto/sig:158'));
});

test('what went before does not count', async (t) => {
  const hot = await readProfiles(await directoryWith(t, profile), 5_150_000_000n);
  t.false(hot.behalf.some(({ what, ms }) => what === 'src/mail/accept/accept.ts' && ms > 0));
  t.is(Math.round(hot.busyMs), 400);
});

test('threads are added up', async (t) => {
  const hot = await readProfiles(await directoryWith(t, profile, profile), 0n);
  t.is(Math.round(hot.busyMs), 1200);
});
