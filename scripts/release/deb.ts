/** The Debian package: the program in /opt/postern, and beside it unit, user, command, manual pages and completion. */
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, run, type Tree } from './tree.ts';

const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

const completions = {
  bash: 'usr/share/bash-completion/completions/postern',
  zsh: 'usr/share/zsh/vendor-completions/_postern',
  fish: 'usr/share/fish/vendor_completions.d/postern.fish',
};

export function buildDeb({ directory, release }: Tree, dist: string): void {
  const { version } = release;
  const architecture = architectures[release.architecture];
  if (!architecture)
    throw new Error(`Debian's name of the architecture ${release.architecture} is not known here`);
  // dpkg reads "1.0.0-rc.1" as newer than "1.0.0".
  const debianVersion = version.replace('-', '~');
  const stage = `${directory}-deb`;
  const file = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), text, { mode });
    chmodSync(join(stage, path), mode);
  };
  const config = (name: string) => readFileSync(join(root, 'config', name), 'utf8');

  cpSync(directory, join(stage, 'opt/postern'), { recursive: true, verbatimSymlinks: true });
  file('usr/bin/postern', config('postern-command'), 0o755);
  file('usr/lib/systemd/system/postern.service', config('postern.service'));
  file('usr/lib/sysusers.d/postern.conf', config('debian/sysusers'));
  file('usr/share/doc/postern/copyright', readFileSync(join(root, 'LICENSE'), 'utf8'));
  const postern = (...args: string[]) => run(join(directory, 'scripts/postern'), args, directory);
  for (const [shell, path] of Object.entries(completions)) file(path, postern('completion', shell));
  const manual = join(stage, 'usr/share/man/man1');
  postern('man', '--write', manual);
  run('sh', ['-c', 'gzip -9n "$0"/*.1', manual]);

  for (const name of ['postinst', 'prerm', 'postrm']) file(`DEBIAN/${name}`, config(`debian/${name}`), 0o755);
  const kib = Number(run('du', ['-sk', '--apparent-size', stage]).split('\t')[0]);
  const fields = {
    Package: 'postern',
    Version: debianVersion,
    Architecture: architecture,
    Maintainer: 'The Postern project <postern@localhost>',
    'Installed-Size': String(kib),
    Depends: `libc6 (>= ${glibcOf(directory)}), libstdc++6, systemd`,
    Section: 'mail',
    Priority: 'optional',
    Description: `Self-hosted transactional mail: an HTTP API and its own MTA\n Applications send mail by HTTP or SMTP; Postern signs it with DKIM, queues it and\n delivers it to the recipients' servers itself. Run "postern init" to set it up.`,
  };
  const control = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  file('DEBIAN/control', control.join(''));
  run('dpkg-deb', [
    '--root-owner-group',
    '-Zxz',
    '-z6',
    '--build',
    stage,
    join(dist, `postern_${debianVersion}_${architecture}.deb`),
  ]);
}

/** The oldest GNU C library with all that SQLite's driver uses; Node itself is content with an older one. */
function glibcOf(directory: string): string {
  const driver = readFileSync(
    join(directory, 'node_modules/sqlite3/build/Release/node_sqlite3.node'),
    'latin1',
  );
  const minors = [...driver.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  return `2.${Math.max(28, ...minors)}`;
}
