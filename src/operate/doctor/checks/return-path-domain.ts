/**
 * Bounces and complaints are sent to the return path's domain: whether its mail hosts are this server, and whether this
 * server answers there.
 */
import { isIPv6 } from 'node:net';
import type { SessionResult } from '#mail/deliver/outcome.ts';
import { findMx, type Mx } from '#mail/deliver/route/mx.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import type { Dns } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { readGreeting, type SmtpGreeting } from '#operate/doctor/smtp-greeting.ts';
import { isSameAddress } from '#platform/values/reverse-name.ts';

/** Receivers check this too: many refuse mail if the domain of its sender accepts no mail. */
export async function checkReturnPathDns({ config, dns, ...context }: DoctorContext): Promise<FindingDraft> {
  const ownAddresses = await context.ownAddresses;
  const domain = config.returnPathDomain;
  const record = { type: 'MX', name: domain, value: `10 ${config.hostname}` };
  const mx = await mailHosts(domain, dns);
  if ('result' in mx) {
    return failure(detailOf(mx.result, domain), 'publish its MX record', [record]);
  }
  const found = mx.hosts.map(({ name, addresses }) => `${name} (${addresses.join(', ')})`).join(', ');
  const isHere = mx.hosts.some(({ addresses }) => addresses.some((one) => isOurs(one, ownAddresses)));
  if (isHere) return ok(found);
  return failure(`it leads to ${found}, none of which is this server`, 'publish this MX record instead', [
    record,
  ]);
}

/** Connects to the public address first; if that fails, to the local port, to tell a firewall from a stopped server. */
export async function checkReturnPathHost(context: DoctorContext): Promise<FindingDraft> {
  const { config, surroundings } = context;
  const { returnPort, timeouts } = surroundings;
  if (config.inboundPort === null) {
    return warning(
      'POSTERN_INBOUND_PORT is off: bounces that arrive as mail, and complaints, are never seen',
      'set POSTERN_INBOUND_PORT=25',
    );
  }
  const address = await addressToProbe(context);
  if (address === undefined) return skipped('not known: the addresses of this server are not known');
  const connect = (host: string, port: number) =>
    readGreeting(
      { address: host, port, from: undefined, timeoutMs: timeouts.connect },
      config.hostname,
      timeouts.greeting,
    );
  const outside = await connect(address, returnPort);
  const where = `port ${returnPort} of ${address}`;
  if (isOurGreeting(outside, config.hostname)) return ok(`${where} greets as ${config.hostname}`);
  if (outside.greeting !== null) {
    const advice = `stop the other mail server there, or forward port ${returnPort} to POSTERN_INBOUND_PORT (${config.inboundPort})`;
    return failure(`${where} greets as another server: "${outside.greeting}"`, advice);
  }
  const inside = await connect(localHost(config.smtpHost), config.inboundPort);
  if (!isOurGreeting(inside, config.hostname)) {
    return failure(
      `${address} ${outside.error}, and nothing answers on this server either`,
      'start Postern; if it runs, its log says why the port is not open',
    );
  }
  return warning(
    `this server answers at port ${config.inboundPort} here, but ${address} ${outside.error}`,
    `open port ${returnPort} in the firewall and forward it to POSTERN_INBOUND_PORT; behind some NATs a machine cannot reach its own public address: then test from another machine`,
  );
}

/** One of the mail hosts, if it is this server; else an address of this server (checkReturnPathDns reports that). */
async function addressToProbe({ config, dns, ...context }: DoctorContext): Promise<string | undefined> {
  const ownAddresses = await context.ownAddresses;
  const mx = await mailHosts(config.returnPathDomain, dns).catch(() => null);
  const addresses = mx && 'hosts' in mx ? mx.hosts.flatMap((host) => host.addresses) : [];
  return addresses.find((one) => isOurs(one, ownAddresses)) ?? ownAddresses[0];
}

/** Throws Unanswered if DNS does not answer for a name. */
async function mailHosts(domain: string, dns: Dns): Promise<Mx> {
  const mx = await findMx(domain, { resolve: dns.resolve, allowPrivate: true, random: () => 0 });
  if ('result' in mx && /^(?:dns|resolver)-failed$/.test(mx.result.kind)) {
    const records = await dns.records<{ exchange: string }>(domain, 'MX');
    await Promise.all([domain, ...records.map(({ exchange }) => exchange)].map(dns.addresses));
  }
  return mx;
}

/** After mailHosts, `dns-failed` can only mean that no host has an address. */
function detailOf(result: SessionResult, domain: string): string {
  if (result.kind === 'dns-failed') return `the hosts in the MX record of ${domain} have no address`;
  return 'detail' in result ? result.detail : result.kind;
}

function isOurGreeting({ greeting }: SmtpGreeting, hostname: string): boolean {
  return greeting?.toLowerCase().startsWith(`220 ${hostname} `) ?? false;
}

function isOurs(address: string, ownAddresses: string[]): boolean {
  return ownAddresses.some((one) => isSameAddress(one, address));
}

/** The address at which a listener on all addresses can be reached. */
function localHost(smtpHost: string | null): string {
  if (smtpHost === null || smtpHost === '0.0.0.0') return '127.0.0.1';
  return smtpHost === '::' || (isIPv6(smtpHost) && /^[0:]+$/.test(smtpHost)) ? '::1' : smtpHost;
}
