/**
 * `node scripts/image-steps.ts`, as root: checks that the image works, on machines without a container engine.
 *
 * Runs the steps of the Dockerfile in clean Debian directories (test/lab/programs/image.ts). Then it starts the result as an engine does
 * with `--read-only --cap-drop ALL --security-opt no-new-privileges`: as process 1 and as the image's user, without
 * capabilities, in a network of its own, with an empty data volume as the only writable directory. It waits until the image's
 * HEALTHCHECK succeeds, creates an organization with the command line inside, tries to write elsewhere, stops the image with
 * STOPSIGNAL, and starts it again on the same volume.
 *
 * Exits 0 if everything worked, 1 if not, 2 if root, debootstrap or bubblewrap is missing. Takes some minutes and 2 GB under
 * TMPDIR. Leaves nothing behind, not even after Ctrl-C.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { perform, readOptions } from '../test/lab/load/stage.ts';
import { asUser, buildImage, execute, type Image } from '../test/lab/programs/image.ts';
import { isInstalled } from '../test/lab/programs/programs.ts';

readOptions('node scripts/image-steps.ts', {});
const missing = ['debootstrap', 'bwrap', 'nsenter'].filter((program) => !isInstalled(program));
if (process.getuid!() !== 0 || missing.length > 0) {
  console.error('image-steps needs root, and: apt-get install debootstrap bubblewrap');
  process.exit(2);
}

const root = join(import.meta.dirname, '..');
const healthyWithinMs = 30_000;
/** How long engines wait before they kill a container. */
const stopWithinMs = 10_000;

interface Container {
  /** Resolves with the output; rejects unless the command exited 0. */
  run(command: string[]): Promise<string>;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** Isolated like a container. */
async function startContainer(image: Image, volume: string): Promise<Container> {
  const child = spawn(
    'bwrap',
    [
      ...['--ro-bind', image.root, '/', '--bind', volume, image.volume, '--proc', '/proc', '--dev', '/dev'],
      ...['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--as-pid-1', '--info-fd', '3'],
      // Capabilities that are needed to become the user; none of them is left afterwards.
      ...['--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID'],
      ...[...asUser(image), ...image.command],
    ],
    { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] },
  );
  const gone = once(child, 'exit');
  const info = createInterface({ input: child.stdio[3] as NodeJS.ReadableStream });
  let text = '';
  for await (const line of info) text += line;
  const pid: number = JSON.parse(text)['child-pid'];
  const enter = ['-t', String(pid), '-m', '-p', '-n', '-i', '-u', `--wd=/proc/${pid}/root${image.workdir}`];
  return {
    run: (command) =>
      execute('nsenter', [
        ...[...enter, 'env', '-i', ...Object.entries(image.env).map(([name, value]) => `${name}=${value}`)],
        ...['setpriv', `--reuid=${image.user}`, `--regid=${image.user}`, '--init-groups', '--no-new-privs'],
        ...['--bounding-set=-all', '--', ...command],
      ]),
    async stop() {
      const began = Date.now();
      process.kill(pid, image.stopSignal as NodeJS.Signals);
      const [code] = await gone;
      const took = Date.now() - began;
      if (code !== 0) throw new Error(`after ${image.stopSignal} it ended with ${code}`);
      if (took > stopWithinMs) throw new Error(`it took ${took} ms to stop`);
      say(`${image.stopSignal}: gone after ${took} ms, exit code 0`);
    },
    async kill() {
      if (child.exitCode === null && child.signalCode === null) process.kill(pid, 'SIGKILL');
      await gone;
    },
  };
}

/** Runs the image's own HEALTHCHECK and nothing else. */
async function untilHealthy({ healthcheck }: Image, container: Container): Promise<void> {
  const [, words] = /^CMD (\[.*\])$/.exec(String(healthcheck.rest)) ?? [];
  if (!words) throw new Error('the Dockerfile has no HEALTHCHECK of the form CMD ["…"]');
  const began = Date.now();
  for (;;) {
    const trouble = await container.run(JSON.parse(words)).then(
      () => null,
      (error: Error) => error,
    );
    if (!trouble) break;
    if (Date.now() - began > healthyWithinMs)
      throw new Error(`it does not become healthy: ${trouble.message}`);
  }
  say(`healthy after ${Date.now() - began} ms, by the image's own health check`);
}

function say(line: string): void {
  console.log(`image-steps: ${line}`);
}

const faults = await perform('image', async (stage) => {
  const image = await buildImage(root, stage.directory, say);
  say(`the steps have added ${image.addedMb} MB to the base`);
  const volume = join(stage.directory, 'volume');
  // A new volume gets the owner and mode of the directory that it covers.
  await execute('cp', ['-a', '-T', join(image.root, image.volume), volume]);
  for (const turn of ['first', 'second']) {
    const container = await stage.start(startContainer(image, volume), (one) => one.kill());
    await untilHealthy(image, container);
    const listed = await container.run(['postern', 'org', 'list', '--json']);
    if (JSON.parse(listed).length > 0 !== (turn === 'second'))
      throw new Error(`organizations at the ${turn} start: ${listed}`);
    if (turn === 'first') await container.run(['postern', 'org', 'create', '--name', 'Acme']);
    for (const place of ['/postern', '/tmp', '/home/node', '/etc']) {
      const isWritten = await container.run(['touch', `${place}/written`]).then(
        () => true,
        () => false,
      );
      if (isWritten) throw new Error(`${place} can be written to`);
    }
    await container.stop();
  }
  return [];
});
for (const fault of faults) console.error(`image-steps: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
