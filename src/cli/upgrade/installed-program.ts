/**
 * The program of the service on this machine, in /opt/postern: replaced by another release, and put back. It is a Debian
 * package or an unpacked archive, and stays what it is.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '#cli/failure.ts';
import { isPackage } from './release-file.ts';

export interface InstalledProgram {
  /** Keeps the present program, so that `goBack` can put it back. Changes nothing else. */
  keep(): void;
  install(): void;
  goBack(): void;
}

const directory = '/opt/postern';
/** Until the next upgrade. */
const kept = '/opt/postern.before';
const unpacked = '/opt/postern.new';

/** What an upgrade leaves, so that a person can go back. */
export const replacedPrograms = [
  { path: kept, what: 'the program before the last upgrade' },
  { path: unpacked, what: 'the program that an upgrade did not install' },
];

const shell = (script: string, ...args: string[]) =>
  execFileSync('sh', ['-ec', `umask 022\n${script}`, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });

export function installedProgram(file: string): InstalledProgram {
  const isInstalledAsPackage = existsSync('/var/lib/dpkg/info/postern.list');
  if (isPackage(file) !== isInstalledAsPackage) {
    const wanted = isInstalledAsPackage
      ? 'a Debian package; give the .deb'
      : 'unpacked from an archive; give the .tar.gz';
    throw new Failure(`Postern was installed as ${wanted} of the release`);
  }
  return isInstalledAsPackage ? debianPackage(file) : archive(file);
}

/** dpkg keeps no packages, so the present one is made again from its files. */
function debianPackage(file: string): InstalledProgram {
  const keptPackage = join(kept, 'postern.deb');
  return {
    keep() {
      rmSync(kept, { recursive: true, force: true });
      mkdirSync(kept);
      shell(
        `mkdir -p "$0/files/DEBIAN"
         cd "$0/files"
         dpkg-query --listfiles postern | grep -v '^/.$' | tar --create --no-recursion --directory / --files-from - 2>/dev/null | tar --extract
         dpkg-query --status postern | grep -v '^Status:' >DEBIAN/control
         for script in postinst prerm postrm; do cp /var/lib/dpkg/info/postern.$script DEBIAN/$script; done
         dpkg-deb -Znone --build . ../postern.deb
         rm -r "$0/files"`,
        kept,
      );
    },
    install: () => void shell('dpkg --install "$0"', file),
    goBack: () => void shell('dpkg --install --force-downgrade "$0"', keptPackage),
  };
}

/** docs/install.md has the unit and the command copied to these places. */
const copies: Record<string, string> = {
  'config/postern.service': '/etc/systemd/system/postern.service',
  'config/postern-command': '/usr/local/bin/postern',
};

function archive(file: string): InstalledProgram {
  /** A copy that was changed by hand is left alone. */
  const exchange = (from: string) => {
    for (const [path, copy] of Object.entries(copies)) {
      const isUnchanged = existsSync(copy) && readFileSync(copy).equals(readFileSync(join(from, path)));
      if (isUnchanged) cpSync(join(directory, path), copy);
    }
    shell('systemctl daemon-reload');
  };
  return {
    keep() {
      for (const each of [kept, unpacked]) rmSync(each, { recursive: true, force: true });
      mkdirSync(unpacked);
      shell(
        'tar --extract --gzip --no-same-owner --strip-components=1 --directory "$0" --file "$1"',
        unpacked,
        file,
      );
    },
    install() {
      renameSync(directory, kept);
      renameSync(unpacked, directory);
      exchange(kept);
    },
    goBack() {
      if (!existsSync(kept)) return;
      renameSync(directory, unpacked);
      renameSync(kept, directory);
      exchange(unpacked);
    },
  };
}
