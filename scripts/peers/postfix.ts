/**
 * A real Postfix as the mail exchanger of a fake zone, and a real OpenDKIM that verifies what it receives, for the
 * scripts that want another program's word. Both are private instances: their configuration, queue, sockets, logs and
 * mailboxes are in the directory given, and they listen on loopback alone, on a port of their own. The system's own
 * Postfix, its configuration, its queue and its port 25 are left alone.
 *
 * Whoever starts one of them stops it, and removes the directory after that; a start that fails has left nothing
 * running. Postfix is started by root only, and gives the privilege up by itself; so does OpenDKIM.
 *
 * BUGS: made for Debian and its relatives: OpenDKIM must be built with unbound, which can ask a DNS at another port
 * than 53.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../test/helpers/until.ts';
import { readMaildir } from './maildir.ts';
import { freePort } from './ports.ts';

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
}

export interface Postfix {
  host: string;
  port: number;
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

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
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
  await writeFile(join(config, 'master.cf'), masterCf(host, port));
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

export interface OpenDkim {
  /** What Postfix is to be given as `smtpd_milters`. */
  milter: string;
  stop(): Promise<void>;
}

/** OpenDKIM in verifying mode, which looks keys up in the DNS at that port of 127.0.0.1 and in no other. */
export async function startOpenDkim(options: {
  directory: string;
  dnsPort: number;
  hostname?: string;
}): Promise<OpenDkim> {
  const { directory, dnsPort, hostname = 'mx1.invalid' } = options;
  const own = join(directory, 'opendkim');
  await makeDirectory(own, 'postfix');
  const [config, resolver, socket] = ['opendkim.conf', 'unbound.conf', 'socket'].map((name) =>
    join(own, name),
  );
  await writeFile(config!, openDkimConf(socket!, resolver!, hostname));
  await writeFile(resolver!, unboundConf(dnsPort));
  const child = spawn('opendkim', ['-f', '-x', config!], { detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
  const ended = once(child, 'exit');
  const stop = async () => {
    // Asked politely it takes five seconds, and it has nothing to put in order.
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await until(() => existsSync(socket!) || child.exitCode !== null, { what: 'the socket of OpenDKIM' });
    if (child.exitCode !== null) throw new Error(`OpenDKIM does not start: ${said}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { milter: `unix:${socket}`, stop };
}

/** 127.0.0.1 counts as internal, whose mail would be signed instead of verified, unless it is told otherwise. */
function openDkimConf(socket: string, resolver: string, hostname: string): string {
  return `Mode v
Background no
Syslog no
UserID postfix
Socket local:${socket}
AuthservID ${hostname}
AlwaysAddARHeader yes
InternalHosts 192.0.2.1
ResolverConfiguration ${resolver}
`;
}

/** All of DNS is at one port; no DNSSEC; and .invalid, which unbound answers by itself (RFC 6761), is asked too. */
function unboundConf(dnsPort: number): string {
  return `server:
  do-not-query-localhost: no
  module-config: "iterator"
  local-zone: "invalid." nodefault
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${dnsPort}
`;
}

async function makeDirectory(directory: string, owner: string): Promise<void> {
  await run('install', ['-d', '-m', '0755', '-o', owner, directory]);
}
