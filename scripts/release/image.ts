/** The container image, built from the Dockerfile by the first builder that this machine has, and saved as a file. */
import { spawnSync } from 'node:child_process';
import { root, run, type Tree } from './tree.ts';

export function buildImage({ release }: Tree, file: string): void {
  const builder = ['docker', 'podman', 'buildah'].find((name) => spawnSync(name, ['--version']).status === 0);
  if (!builder)
    throw new Error('there is no docker, podman or buildah to build the image; or give --no-image');
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
