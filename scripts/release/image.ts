/** The container image, built from the Dockerfile by the first builder that works on this machine, and saved as a file. */
import { spawnSync } from 'node:child_process';
import { root, run, type Tree } from './tree.ts';

/** A docker that is installed may have no daemon, which only `info` asks. Look before all else is built. */
export function imageBuilder(env = process.env): string {
  const builder = ['docker', 'podman', 'buildah'].find(
    (name) => spawnSync(name, ['info'], { env, stdio: 'ignore' }).status === 0,
  );
  if (builder) return builder;
  throw new Error(
    'no docker (with its daemon), podman or buildah works here to build the image; or give --no-image',
  );
}

export function buildImage({ release }: Tree, builder: string, file: string): void {
  const name = `postern:${release.version}`;
  const labels = { version: release.version, revision: release.commit };
  const given = Object.entries(labels).map(
    ([key, value]) => `--label=org.opencontainers.image.${key}=${value}`,
  );
  // buildah by itself makes images of the OCI's form, which has no health check.
  const form = builder === 'docker' ? [] : ['--format=docker'];
  run(builder, ['build', ...form, ...given, '--tag', name, root]);
  if (builder === 'buildah') run(builder, ['push', name, `docker-archive:${file}:${name}`]);
  else run(builder, ['save', '--output', file, name]);
}
