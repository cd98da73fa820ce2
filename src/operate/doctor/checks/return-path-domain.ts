/**
 * The way back: bounces and complaints come to the return path's domain, so its mail hosts should be this machine,
 * and this server should be what answers there.
 */
import { isIPv6 } from 'node:net';
import type { Config } from '../../../config.ts';
import type { SessionResult } from '../../../outcome.ts';
import { findMx, type Mx } from '../../../route/mx.ts';
import type { Dns } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';
import { isSame } from '../reverse-name.ts';
import { type GreetingTimes, talkTo } from '../smtp-greeting.ts';
import type { Surroundings } from '../surroundings.ts';

interface ReturnParts {
  config: Pick<Config, 'hostname' | 'returnPathDomain' | 'inboundPort' | 'smtpHost'>;
  dns: Dns;
  surroundings: Pick<Surroundings, 'returnPort' | 'patience'>;
  /** All that may be ours: of the interfaces, and as others see us. */
  ours: string[];
}

/** Receivers check it too: many refuse mail from a sender to whom they could not answer. */
export async function checkReturnPathDns({ config, dns, ours }: ReturnParts): Promise<FindingDraft> {
  const domain = config.returnPathDomain;
  const record = { type: 'MX', name: domain, value: `10 ${config.hostname}` };
  const mx = await mailHosts(domain, dns);
  if ('result' in mx) {
    return failure(detailOf(mx.result, domain), 'publish its MX record', [record]);
  }
  const found = mx.hosts.map(({ name, addresses }) => `${name} (${addresses.join(', ')})`).join(', ');
  const isHere = mx.hosts.some(({ addresses }) => addresses.some((one) => isOurs(one, ours)));
  if (isHere) return ok(found);
  return failure(`it leads to ${found}, none of which is this machine`, 'publish this MX record instead', [
    record,
  ]);
}

/** Knocks as the world does; where nobody answers, here, to tell a firewall from a server that does not run. */
export async function checkReturnPathHost({
  config,
  dns,
  surroundings,
  ours,
}: ReturnParts): Promise<FindingDraft> {
  const { returnPort, patience } = surroundings;
  if (config.inboundPort === null) {
    return warning(
      'POSTERN_INBOUND_PORT is off: bounces that arrive as mail, and complaints, are never seen',
      'set POSTERN_INBOUND_PORT=25',
    );
  }
  const address = await whereToKnock(config.returnPathDomain, { dns, ours });
  if (address === undefined) return skipped('not known: the addresses of this machine are not known');
  const knock = (host: string, port: number) =>
    talkTo(
      { address: host, port, from: undefined, timeoutMs: patience.connect },
      config.hostname,
      patience.talk,
    );
  const outside = await knock(address, returnPort);
  const where = `port ${returnPort} of ${address}`;
  if (isOurGreeting(outside, config.hostname)) return ok(`${where} greets as ${config.hostname}`);
  if (outside.greeting !== null) {
    const advice = `stop the other mail server there, or forward port ${returnPort} to POSTERN_INBOUND_PORT (${config.inboundPort})`;
    return failure(`${where} greets as another server: "${outside.greeting}"`, advice);
  }
  const inside = await knock(localHost(config.smtpHost), config.inboundPort);
  if (!isOurGreeting(inside, config.hostname)) {
    return failure(
      `${address} ${outside.trouble}, and nothing answers on this machine either`,
      'start Postern; if it runs, its log says why the port is not open',
    );
  }
  return warning(
    `this server answers at port ${config.inboundPort} here, but ${address} ${outside.trouble}`,
    `open port ${returnPort} in the firewall and forward it to POSTERN_INBOUND_PORT; behind some NATs a machine cannot reach its own public address: then test from another machine`,
  );
}

/** Where the mail hosts are not this machine, which is their own finding: at what others see of us. */
async function whereToKnock(domain: string, { dns, ours }: Pick<ReturnParts, 'dns' | 'ours'>) {
  const mx = await mailHosts(domain, dns).catch(() => null);
  const addresses = mx && 'hosts' in mx ? mx.hosts.flatMap((host) => host.addresses) : [];
  return addresses.find((one) => isOurs(one, ours)) ?? ours[0];
}

/** Throws Unanswered where DNS does not know; names that lead nowhere are known to. */
async function mailHosts(domain: string, dns: Dns): Promise<Mx> {
  const mx = await findMx(domain, { resolve: dns.resolve, allowPrivate: true, random: () => 0 });
  if ('result' in mx && mx.result.kind === 'dns-failed') {
    const records = await dns.records<{ exchange: string }>(domain, 'MX');
    await Promise.all([domain, ...records.map(({ exchange }) => exchange)].map(dns.addresses));
  }
  return mx;
}

/** That names lead nowhere is known here, once DNS has not failed. */
function detailOf(result: SessionResult, domain: string): string {
  if (result.kind === 'dns-failed') return `the hosts in the MX record of ${domain} have no address`;
  return 'detail' in result ? result.detail : result.kind;
}

function isOurGreeting({ greeting }: GreetingTimes, hostname: string): boolean {
  return greeting?.toLowerCase().startsWith(`220 ${hostname} `) ?? false;
}

function isOurs(address: string, ours: string[]): boolean {
  return ours.some((one) => isSame(one, address));
}

/** Where a listener on "every address" is found. */
function localHost(smtpHost: string | null): string {
  if (smtpHost === null || smtpHost === '0.0.0.0') return '127.0.0.1';
  return smtpHost === '::' || (isIPv6(smtpHost) && /^[0:]+$/.test(smtpHost)) ? '::1' : smtpHost;
}
