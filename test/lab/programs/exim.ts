/**
 * A real Exim (Debian's exim4-daemon-light or -heavy) as an MX host on loopback, in a jail (jail.ts). It accepts mail for the
 * mailboxes of one domain, offers STARTTLS, and stores each message in a Maildir.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listens } from '../load/ports.ts';
import { makeJail } from './jail.ts';
import { readMaildir } from './maildir.ts';
import type { Receiver, ReceiverOptions } from './receiver.ts';

export const eximProgram = '/usr/sbin/exim4';

/** The user that Debian's build runs as. */
const user = 'Debian-exim';

/** `config` replaces the configuration of a receiver, and `mode` how it runs; spool, log and certificate stay the same. */
export async function startExim(
  options: ReceiverOptions,
  config = configuration(options),
  mode = ['-bdf'],
): Promise<Receiver & { mails(mailbox: string, count: number): Promise<Buffer[]> }> {
  const { directory, host, port } = options;
  const jail = await makeJail({
    directory,
    programs: [eximProgram],
    packages: options.packages,
    users: [user],
    files: { ...options.files, '/exim.conf': config, '/mx.pem': await readFile(options.pemFile, 'utf8') },
    directories: { '/spool': user, '/log': user, '/mail': user },
  });
  const output = await jail.run(eximProgram, '-C', '/exim.conf', '-bV');
  const server = await jail.serve([eximProgram, '-C', '/exim.conf', ...mode], () => listens(host, port));
  return {
    version: `Exim ${/Exim version (\S+)/.exec(output)?.[1]}`,
    received: async (mailbox) => (await readMaildir(join(directory, 'mail', mailbox)))[0]!,
    mails: (mailbox, count) => readMaildir(join(directory, 'mail', mailbox), count),
    log: async () => server.log() + (await readFile(join(directory, 'log/main'), 'utf8').catch(() => '')),
    stop: server.stop,
  };
}

/** The settings that every configuration begins with. */
export const eximMain = ({ host, port, hostname }: Pick<ReceiverOptions, 'host' | 'port' | 'hostname'>) => `
primary_hostname = ${hostname}
local_interfaces = ${host}
daemon_smtp_ports = ${port}
spool_directory = /spool
log_file_path = /log/%s
pid_file_path = /spool/exim.pid
keep_environment =`;

/** Exim queries DNS only at port 53, so it cannot verify DKIM here. */
function configuration({ host, port, hostname, domain, mailboxes }: ReceiverOptions): string {
  return `${eximMain({ host, port, hostname })}
tls_advertise_hosts = *
tls_certificate = /mx.pem
tls_privatekey = /mx.pem
smtputf8_advertise_hosts = *
dkim_verify_signers =
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  accept domains = ${domain}
         verify = recipient
  deny
data:
  accept
begin routers
mailbox:
  driver = accept
  domains = ${domain}
  local_parts = ${mailboxes.join(' : ')}
  transport = maildir
begin transports
maildir:
  driver = appendfile
  directory = /mail/$local_part_data
  maildir_format
  envelope_to_add
  return_path_add
  user = ${user}
`;
}
