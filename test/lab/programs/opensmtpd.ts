/**
 * A real OpenSMTPD (Debian's opensmtpd) as an MX host on loopback. It runs in a jail (jail.ts), because no configuration can
 * change the paths of its spool and socket. It accepts mail for one domain, offers STARTTLS, and stores each message in a
 * Maildir.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listens } from '../load/ports.ts';
import { makeJail } from './jail.ts';
import { readMaildir } from './maildir.ts';
import type { Receiver, ReceiverOptions } from './receiver.ts';

export const openSmtpdProgram = '/usr/sbin/smtpd';

/** The shell command that stores a message. */
const keeper = '/usr/libexec/opensmtpd/mail.maildir';

/** `config` replaces the configuration of a receiver. */
export async function startOpenSmtpd(
  options: ReceiverOptions,
  config = configuration(options),
): Promise<Receiver> {
  const { directory, host, port } = options;
  const pem = await readFile(options.pemFile, 'utf8');
  const jail = await makeJail({
    directory,
    programs: [openSmtpdProgram, keeper, '/bin/sh'],
    packages: options.packages,
    users: ['opensmtpd', 'opensmtpq', 'keeper'],
    files: { '/smtpd.conf': config, '/etc/mailname': `${options.hostname}\n` },
    secrets: { '/mx.pem': pem },
    directories: {
      '/var/spool/smtpd': 'root',
      '/var/lib/opensmtpd/empty': 'root',
      '/var/run': 'root',
      '/mail': 'keeper',
    },
  });
  const output = await jail.run('/bin/sh', '-c', `${openSmtpdProgram} -h 2>&1; :`);
  const server = await jail.serve([openSmtpdProgram, '-d', '-f', '/smtpd.conf'], () => listens(host, port));
  return {
    version: /OpenSMTPD \S+/.exec(output)?.[0] ?? 'OpenSMTPD',
    received: async (mailbox) => (await readMaildir(join(directory, 'mail', mailbox)))[0]!,
    log: async () => server.log(),
    stop: server.stop,
  };
}

function configuration({ host, port, hostname, domain, mailboxes }: ReceiverOptions): string {
  const boxes = mailboxes.map((mailbox) => `"${mailbox}@${domain}" = keeper`).join(', ');
  return `
pki ${hostname} cert "/mx.pem"
pki ${hostname} key "/mx.pem"
table boxes { ${boxes} }
listen on ${host} port ${port} tls pki ${hostname} hostname ${hostname}
action keep maildir "/mail/%{rcpt.user}" virtual <boxes>
match from any for domain "${domain}" action keep
`;
}
