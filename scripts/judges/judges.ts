/**
 * Other people's programs, each of which says something about a list of mails in files. None is installed here; the packages
 * are Debian's.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { verifyDkim } from '#lab/dkim.ts';
import type { Dns } from '#lab/dns/dns.ts';
import { freePort, listens } from '#lab/load/ports.ts';
import type { Stage } from '#lab/load/stage.ts';
import { isInstalled, makeDirectory } from '#lab/programs/programs.ts';
import { serve } from '#lab/programs/serve.ts';

/** What a judge finds in a mail: nothing, or remarks. */
export interface Judge {
  name: string;
  /** apt-get install … */
  packages: string;
  isThere(): boolean;
  judge(files: string[], world: JudgeWorld): Promise<string[][]>;
}

interface JudgeWorld {
  stage: Stage;
  dns: Dns;
  /** The DKIM records by their names. */
  keys: Record<string, string>;
  /** The envelope that each file's mail arrived with, as a receiving host tells its filters. */
  envelopes: Map<string, { from: string; to: string }>;
}

const run = promisify(execFile);
const options = { maxBuffer: 64 * 1024 * 1024 };

/** Debian's Python, because another one may come first in PATH without Debian's modules. */
const python = '/usr/bin/python3';
const can = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;

const program = (name: string) => join(import.meta.dirname, name);

/** One line of output for each file; remarks are separated by tabs. */
async function linesOf(command: string, args: string[]): Promise<string[][]> {
  const { stdout } = await run(command, args, options);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t').filter((one) => one !== '-'));
}

export const judges: Judge[] = [
  {
    name: 'dkimpy',
    packages: 'python3-dkim',
    isThere: () => can(python, '-c', 'import dkim'),
    judge: (files, { keys }) => linesOf(python, [program('dkimpy.py'), JSON.stringify(keys), ...files]),
  },
  { name: 'OpenDKIM', packages: 'opendkim', isThere: () => isInstalled('opendkim'), judge: openDkim },
  {
    name: 'mailauth',
    packages: '',
    isThere: () => true,
    judge: (files, { dns }) =>
      Promise.all(
        files.map(async (file) => {
          const verdicts = await verifyDkim(await readFile(file), dns);
          return verdicts.some(({ result }) => result === 'pass') ? [] : ['DKIM fails'];
        }),
      ),
  },
  {
    name: 'Python email',
    packages: 'python3',
    isThere: () => can(python, '-c', 'import email'),
    judge: (files) => linesOf(python, [program('python-email.py'), ...files]),
  },
  {
    name: 'Perl MIME::Parser',
    packages: 'libmime-tools-perl',
    isThere: () => can('perl', '-e', 'use MIME::Parser'),
    judge: (files) => linesOf('perl', [program('mime-parser.pl'), ...files]),
  },
  { name: 'Rspamd', packages: 'rspamd', isThere: () => isInstalled('rspamd'), judge: rspamd },
  {
    name: 'SpamAssassin',
    packages: 'spamassassin',
    isThere: () => can('perl', '-e', 'use Mail::SpamAssassin'),
    judge(files, { envelopes }) {
      const lines = files.map((file) => `${file}\t${envelopes.get(file)!.from}`);
      return linesOf('perl', [program('spamassassin.pl'), lines.join('\n'), ...files]);
    },
  },
];

async function openDkim(files: string[], { stage, keys }: JudgeWorld): Promise<string[][]> {
  const [config, table] = [join(stage.directory, 'opendkim.conf'), join(stage.directory, 'opendkim.keys')];
  const records = Object.entries(keys).map(([name, record]) => `${name} ${record}\n`);
  await writeFile(table, records.join(''));
  await writeFile(config, `Mode v\nSyslog no\nTestPublicKeys ${table}\n`);
  const { stdout, stderr } = await run('opendkim', ['-t', files.join(','), '-x', config, '-v'], options);
  const verdicts = `${stdout}${stderr}`.match(/verification .*(succeeded|failed)|no signature/g) ?? [];
  return verdicts.map((verdict) => (verdict.endsWith('succeeded') ? [] : ['DKIM fails']));
}

/** What a receiving host tells Rspamd of the connection, from which it adds the last Received. */
const connection = {
  IP: '192.0.2.25',
  Helo: 'mail.sender.invalid',
  Hostname: 'mail.sender.invalid',
  'TLS-Cipher': 'TLS_AES_256_GCM_SHA384',
};

/** A private instance, which asks our DNS alone. */
async function rspamd(files: string[], { stage, dns, envelopes }: JudgeWorld): Promise<string[][]> {
  const own = join(stage.directory, 'rspamd');
  await makeDirectory(own, '_rspamd');
  const local = join(own, 'local.d');
  await makeDirectory(local, '_rspamd');
  const [scan, control, proxy] = [
    await freePort('127.0.0.1'),
    await freePort('127.0.0.1'),
    await freePort('127.0.0.1'),
  ];
  const binds = { normal: scan, controller: control, proxy };
  for (const [worker, port] of Object.entries(binds)) {
    await writeFile(join(local, `worker-${worker}.inc`), `bind_socket = "127.0.0.1:${port}";\n`);
  }
  await writeFile(join(local, 'options.inc'), `dns { nameserver = ["${dns.address}"]; }\n`);
  await writeFile(join(local, 'logging.inc'), `type = "file"; filename = "${own}/log";\n`);
  const vars = ['DBDIR', 'RUNDIR', 'LOGDIR'].map((name) => `--var=${name}=${own}`);
  const command = ['rspamd', '-f', '-u', '_rspamd', '-g', '_rspamd', `--var=LOCAL_CONFDIR=${own}`, ...vars];
  const isUp = () => listens('127.0.0.1', scan);
  await stage.start(serve(command, isUp), (it) => it.stop());
  const found: string[][] = [];
  for (const file of files) {
    const response = await fetch(`http://127.0.0.1:${scan}/checkv2`, {
      method: 'POST',
      headers: { ...connection, From: envelopes.get(file)!.from, Rcpt: envelopes.get(file)!.to },
      body: await readFile(file),
    });
    const { symbols } = (await response.json()) as { symbols: Record<string, { score: number }> };
    const counted = Object.entries(symbols).filter(([, { score }]) => score >= 0.1);
    found.push(counted.map(([name, { score }]) => `${name}=${score}`));
  }
  return found;
}
