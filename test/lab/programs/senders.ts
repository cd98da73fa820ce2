/**
 * Postfix, Exim and OpenSMTPD as senders with their usual, opportunistic TLS: the programs that Postern's TLS is compared with, and
 * that send mail to it. They take mail for any domain of `routes` from loopback and give it to that domain's host, with short
 * timeouts and retries.
 */
import { connectSmtp } from '../mx/smtp-client.ts';
import { eximMain, startExim } from './exim.ts';
import { startOpenSmtpd } from './opensmtpd.ts';
import { startPostfix } from './postfix.ts';

export interface SenderOptions {
  directory: string;
  host: string;
  port: number;
  pemFile: string;
  packages?: string;
  /** The host of each domain; all are at one port. */
  routes: Map<string, string>;
  mxPort: number;
}

export interface Sender {
  version: string;
  log(): Promise<string>;
  stop(): Promise<unknown>;
}

export async function startSendingPostfix(options: SenderOptions): Promise<Sender> {
  const { directory, host, port, pemFile, routes, mxPort } = options;
  const rows = [...routes].map(([domain, address]) => `{ ${domain} = smtp:[${address}]:${mxPort} }`);
  const postfix = await startPostfix({
    directory,
    host,
    port,
    pemFile,
    mailboxes: [],
    settings: {
      mynetworks: '127.0.0.0/8',
      virtual_mailbox_domains: '',
      virtual_mailbox_maps: '',
      transport_maps: `inline:{ ${rows.join(' ')} }`,
      smtpd_relay_restrictions: 'permit_mynetworks, reject',
      smtp_dns_support_level: 'disabled',
      smtp_tls_security_level: 'may',
      smtp_helo_timeout: '3s',
      smtp_starttls_timeout: '3s',
      minimal_backoff_time: '3s',
      maximal_backoff_time: '5s',
      queue_run_delay: '3s',
    },
    services: 'smtp      unix - - n - - smtp\nscache    unix - - n - 1 scache\n',
  });
  return { version: 'Postfix', log: postfix.log, stop: postfix.stop };
}

export function startSendingExim(options: SenderOptions): Promise<Sender> {
  const { host, port, routes, mxPort } = options;
  const rows = [...routes].map(([domain, address]) => `${domain} ${address} byname`);
  const config = `${eximMain({ host, port, hostname: 'exim.invalid' })}
tls_advertise_hosts =
queue_run_max = 20
remote_max_parallel = 20
smtp_accept_queue_per_connection = 0
dkim_verify_signers =
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  accept
begin routers
out:
  driver = manualroute
  route_list = ${rows.join(' ; ')}
  self = send
  transport = smtp
begin transports
smtp:
  driver = smtp
  port = ${mxPort}
  allow_localhost
  command_timeout = 3s
begin retry
* * F,1h,3s
`;
  const receiver = { ...options, hostname: 'exim.invalid', domain: 'exim.invalid', mailboxes: [] };
  return startExim(receiver, config, ['-bdf', '-q3s']);
}

/** Debian 12's fails every handshake (its issue 1171), so it sends in clear. */
export function startSendingOpenSmtpd(options: SenderOptions): Promise<Sender> {
  const { host, port, routes, mxPort } = options;
  const hostname = 'opensmtpd.invalid';
  const all = [...routes].map(([domain, address], index) => ({ domain, address, action: `out${index}` }));
  const config = [
    `listen on ${host} port ${port} hostname ${hostname}`,
    ...all.map(({ action, address }) => `action "${action}" relay host smtp+notls://${address}:${mxPort}`),
    ...all.map(({ domain, action }) => `match from any for domain "${domain}" action "${action}"`),
  ];
  const receiver = { ...options, hostname, domain: hostname, mailboxes: [] };
  return startOpenSmtpd(receiver, `${config.join('\n')}\n`);
}

/** Gives it one mail for each recipient. */
export async function submitAll({ host, port }: SenderOptions, recipients: string[]): Promise<void> {
  const talk = await connectSmtp(port, { host });
  await talk.says('EHLO client.invalid\r\n', '250');
  for (const to of recipients) {
    await talk.begins('<shop@sender.invalid>', `<${to}>`);
    await talk.says(`From: shop@sender.invalid\r\nTo: ${to}\r\nSubject: Hello\r\n\r\nHello\r\n.\r\n`, '250');
  }
  talk.close();
}
