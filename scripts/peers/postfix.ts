/**
 * A real Postfix as the mail exchanger of a fake zone, for the scripts that want another program's word. It is a private
 * instance: its configuration, queue, sockets, logs and mailboxes are in the directory given, and it listens on loopback
 * alone, on a port of its own. The system's own Postfix, its configuration, its queue and its port 25 are left alone.
 *
 * Whoever starts it stops it, and removes the directory after that; a start that fails has left nothing running. It is
 * started by root only, and gives the privilege up by itself.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readMaildir } from './maildir.ts';
import { freePort } from './ports.ts';
import { isInstalled, makeDirectory } from './programs.ts';

export interface PostfixOptions {
  /** Where all of it goes; exists, and may be entered by everybody (0755). */
  directory: string;
  /** Any 127.0.0.x. */
  host?: string;
  /** A free one, where none is given. */
  port?: number;
  hostname?: string;
  /** The addresses that it takes mail for; another one of their domains is a 550. */
  mailboxes: string[];
  /** Certificate and key for STARTTLS, in one file. */
  pemFile: string;
  /** Parameters of main.cf; they win over ours. */
  settings?: Record<string, string>;
  /** More lines of master.cf: ours only receive. */
  services?: string;
}

export interface Postfix {
  host: string;
  port: number;
  /** Of master(8), whose children all others are. */
  pid: number;
  /** Waits until a mailbox holds `n` messages; their bytes as the Maildir has them, lines ended by LF. */
  received(mailbox: string, n?: number): Promise<Buffer[]>;
  /** Postfix's own mail log. */
  log(): Promise<string>;
  stop(): Promise<unknown>;
}

const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y postfix opendkim opendkim-tools';

/** What keeps these two from being started here, as a sentence that says what to do; null: nothing does. */
export function obstacle(): string | null {
  if (process.getuid?.() !== 0)
    return 'Postfix can only be started by root; run this as root, in a container say';
  const missing = ['postfix', 'opendkim'].filter((program) => !isInstalled(program));
  if (missing.length === 0) return null;
  return `${missing.join(' and ')} not found; on Debian: apt-get update && ${install}`;
}

const run = promisify(execFile);

/** Ctrl-C at our terminal is for us: it must not break off what starts or stops Postfix. */
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
  // It tells what is fatal to a terminal or to syslog, and to nobody else; `script` is that terminal.
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

/** Nobody: virtual(8) delivers as no user below 100. */
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
    // As a host on the internet sees a stranger: no network is ours, nothing is relayed, nothing is local.
    mynetworks: '',
    mydestination: '',
    local_recipient_maps: '',
    alias_maps: '',
    alias_database: '',
    // Where it listens is in master.cf; this only keeps it from looking for interfaces that are not there.
    inet_interfaces: 'loopback-only',
    inet_protocols: 'ipv4',
    virtual_mailbox_domains: [...domains].join(' '),
    virtual_mailbox_base: join(directory, 'mail'),
    virtual_mailbox_maps: `inline:{ ${mailboxes.map((address) => `{ ${address} = ${address}/ }`).join(' ')} }`,
    virtual_uid_maps: `static:${mailUser}`,
    virtual_gid_maps: `static:${mailUser}`,
    // The names of loopback addresses are none of the system's DNS's business.
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

/** What a receiving Postfix needs, no more; nothing in a chroot, and no client that could send mail on. */
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
