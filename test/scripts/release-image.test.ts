/** The builder of the image is one that works, not only one that is installed. */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { imageBuilder } from '../../scripts/release/image.ts';

/** Programs that answer their version; `info` fails without a daemon. */
async function machineWith(t: ExecutionContext, programs: Record<string, boolean>) {
  const directory = await temporaryDirectory(t);
  for (const [name, works] of Object.entries(programs)) {
    const file = join(directory, name);
    await writeFile(file, `#!/bin/sh\ntest "$1" = --version || exit ${works ? 0 : 1}\n`);
    await chmod(file, 0o755);
  }
  return { PATH: directory };
}

test('a docker without a daemon is passed over', async (t) => {
  t.is(imageBuilder(await machineWith(t, { docker: true, buildah: true })), 'docker');
  t.is(imageBuilder(await machineWith(t, { docker: false, buildah: true })), 'buildah');
  const none = await machineWith(t, { docker: false });
  t.throws(() => imageBuilder(none), { message: /no docker \(with its daemon\).*--no-image/ });
});
