/**
 * Postfix, Exim and OpenSMTPD as relays that accept all mail for a domain and pass it on to a second host. What that host
 * refuses, they must return to its sender, in their own format. Mail to the sender's domain goes to a fixed address, because
 * none of them queries DNS here.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eximMain, startExim } from './exim.ts';
import { startOpenSmtpd } from './opensmtpd.ts';
import { startPostfix } from './postfix.ts';
import type { Receiver, ReceiverOptions } from './receiver.ts';

interface ForwarderOptions extends ReceiverOptions {
  /** The second host. */
  next: { host: string; port: number };
  /** The address that receives bounces. */
  back: { domain: string; host: string; port: number };
}

export type Forwarder = Pick<Receiver, 'version' | 'log' | 'stop'>;

export async function startForwardingPostfix(options: ForwarderOptions): Promise<Forwarder> {
  const { domain, next, back } = options;
  const routes = [
    `{ ${domain} = smtp:[${next.host}]:${next.port} }`,
    `{ ${back.domain} = smtp:[${back.host}]:${back.port} }`,
  ];
  const { stdout } = await promisify(execFile)('postconf', ['-d', '-h', 'mail_version']);
  const postfix = await startPostfix({
    ...options,
    mailboxes: [],
    settings: {
      virtual_mailbox_domains: '',
      virtual_mailbox_maps: '',
      relay_domains: domain,
      smtpd_relay_restrictions: 'permit_auth_destination, reject',
      transport_maps: `inline:{ ${routes.join(' ')} }`,
      smtp_dns_support_level: 'disabled',
      smtp_tls_security_level: 'may',
    },
    services: 'smtp unix - - n - - smtp\nrelay unix - - n - - smtp\nscache unix - - n - 1 scache\n',
  });
  return { ...postfix, version: `Postfix ${stdout.trim()}` };
}

export function startForwardingExim(options: ForwarderOptions): Promise<Forwarder> {
  const { domain, next, back } = options;
  const route = ({ host: to, port: at }: { host: string; port: number }) => `"* ${to}::${at} byname"`;
  const config = `${eximMain(options)}
tls_advertise_hosts = *
tls_certificate = /mx.pem
tls_privatekey = /mx.pem
dkim_verify_signers =
trusted_users = Debian-exim
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  accept domains = ${domain}
  deny
data:
  accept
begin routers
back:
  driver = manualroute
  domains = ${back.domain}
  route_list = ${route(back)}
  self = send
  transport = smtp
next:
  driver = manualroute
  domains = ${domain}
  route_list = ${route(next)}
  self = send
  transport = smtp
begin transports
smtp:
  driver = smtp
  # No /etc/services in a jail; the routes say which.
  port = 25
`;
  return startExim(options, config);
}

export function startForwardingOpenSmtpd(options: ForwarderOptions): Promise<Forwarder> {
  const { host, port, hostname, domain, next, back } = options;
  const config = `
listen on ${host} port ${port} hostname ${hostname}
action next relay host smtp+notls://${next.host}:${next.port}
action back relay host smtp+notls://${back.host}:${back.port}
match from any for domain "${domain}" action next
match from any mail-from "<>" for domain "${back.domain}" action back
match for domain "${back.domain}" action back
`;
  return startOpenSmtpd(options, config);
}
