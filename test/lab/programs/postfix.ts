/**
 * A real Postfix as the MX host of a fake zone. It is a private instance: its configuration, queue, sockets, logs and mailboxes
 * are in the given directory, and it listens on a free port of a loopback address. The system's own Postfix is not touched.
 *
 * The caller stops it and then removes the directory. A start that fails leaves nothing running. Only root can start it; it
 * drops its privileges itself.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../load/ports.ts';
import { readMaildir } from './maildir.ts';
import { isInstalled, makeDirectory } from './programs.ts';

export interface PostfixOptions {
  /** Directory for everything. It must exist and be accessible to all users (0755). */
  directory: string;
  /** Any 127.0.0.x. */
  host?: string;
  /** By default, a free port. */
  port?: number;
  hostname?: string;
  /** The addresses that it accepts mail for; other addresses of their domains get 550. */
  mailboxes: string[];
  /** Certificate and key for STARTTLS, in one file. */
  pemFile: string;
  /** Parameters of main.cf, which take precedence over the defaults here. */
  settings?: Record<string, string>;
  /** Additional lines of master.cf; those here only receive. */
  services?: string;
}

export interface Postfix {
  host: string;
  port: number;
  /** Process id of master(8), the parent of all others. */
  pid: number;
  /** Waits until a mailbox has `n` messages; returns their bytes as in the Maildir, with LF line ends. */
  received(mailbox: string, n?: number): Promise<Buffer[]>;
  /** Postfix's own mail log. */
  log(): Promise<string>;
  stop(): Promise<unknown>;
}

const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y postfix opendkim opendkim-tools';

/** A sentence that says why Postfix cannot be started here and what to do; null if it can. */
export function obstacle(): string | null {
  if (process.getuid?.() !== 0)
    return 'Postfix can only be started by root; run this as root, in a container say';
  const missing = ['postfix', 'opendkim'].filter((program) => !isInstalled(program));
  if (missing.length === 0) return null;
  return `${missing.join(' and ')} not found; on Debian: apt-get update && ${install}`;
}

const run = promisify(execFile);

/** In a process group of its own, so that Ctrl-C does not interrupt a command that starts or stops Postfix. */
const runApart = (...command: string[]) => run('setsid', ['--wait', ...command]);

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const { directory, host = '127.0.0.2' } = options;
  const port = options.port ?? (await freePort(host));
  const config = join(directory, 'postfix');
  await mkdir(config);
  await writeFile(join(config, 'main.cf'), mainCf(options));
  await writeFile(join(config, 'master.cf'), masterCf(host, port) + (options.services ?? ''));
  await mkdir(join(directory, 'queue'));
  await makeDirectory(join(directory, 'state'), 'postfix');
  await makeDirectory(join(directory, 'mail'), mailUser);
  const log = () => readFile(join(directory, 'mail.log'), 'utf8').catch(() => '');
  const stop = () => runApart('postfix', '-c', config, 'stop');
  // It reports fatal errors only to a terminal or to syslog; `script` provides a terminal.
  await runApart('script', '-qec', `postfix -c ${config} start`, '/dev/null').catch(async (error) => {
    await stop().catch(() => {});
    throw new Error(`Postfix does not start: ${error.stdout}${await log()}`);
  });
  return {
    host,
    port,
    pid: Number(await readFile(join(directory, 'queue/pid/master.pid'), 'utf8')),
    log,
    stop,
    received: (mailbox, n) => readMaildir(join(directory, 'mail', mailbox), n),
  };
}

/** User id for mailboxes: virtual(8) refuses ids below 100. */
const mailUser = '65534';

function mainCf({
  directory,
  hostname = 'mx1.invalid',
  mailboxes,
  pemFile,
  settings,
}: PostfixOptions): string {
  const domains = new Set(mailboxes.map((address) => address.split('@')[1]));
  const parameters: Record<string, string> = {
    compatibility_level: '3.6',
    queue_directory: join(directory, 'queue'),
    data_directory: join(directory, 'state'),
    maillog_file: join(directory, 'mail.log'),
    maillog_file_prefixes: directory,
    myhostname: hostname,
    // The client is a stranger, as on the internet: no network is trusted, nothing is relayed, nothing is local.
    mynetworks: '',
    mydestination: '',
    local_recipient_maps: '',
    alias_maps: '',
    alias_database: '',
    // The address is in master.cf; this only keeps Postfix from looking for interfaces that do not exist.
    inet_interfaces: 'loopback-only',
    inet_protocols: 'ipv4',
    virtual_mailbox_domains: [...domains].join(' '),
    virtual_mailbox_base: join(directory, 'mail'),
    virtual_mailbox_maps: `inline:{ ${mailboxes.map((address) => `{ ${address} = ${address}/ }`).join(' ')} }`,
    virtual_uid_maps: `static:${mailUser}`,
    virtual_gid_maps: `static:${mailUser}`,
    // No queries to the system's DNS for names of loopback addresses.
    smtpd_peername_lookup: 'no',
    smtpd_tls_security_level: 'may',
    smtpd_tls_cert_file: pemFile,
    smtpd_tls_key_file: pemFile,
    smtpd_tls_received_header: 'yes',
    ...settings,
  };
  return Object.entries(parameters)
    .map(([name, value]) => `${name} = ${value}\n`)
    .join('');
}

/** Only the services that a receiving Postfix needs, without chroot, and without a client that could forward mail. */
function masterCf(host: string, port: number): string {
  return `
${host}:${port} inet n - n - - smtpd
postlog   unix-dgram n - n - 1 postlogd
cleanup   unix n - n - 0 cleanup
qmgr      unix n - n 300 1 qmgr
pickup    unix n - n 60 1 pickup
rewrite   unix - - n - - trivial-rewrite
virtual   unix - n n - - virtual
error     unix - - n - - error
retry     unix - - n - - error
bounce    unix - - n - 0 bounce
defer     unix - - n - 0 bounce
trace     unix - - n - 0 bounce
tlsmgr    unix - - n 1000? 1 tlsmgr
proxymap  unix - - n - - proxymap
anvil     unix - - n - 1 anvil
`;
}
