/** Our EHLO names and addresses: whether forward and reverse DNS agree with what we say in EHLO (RFC 5321 section 4.1.4). */
import type { ZoneRecord } from '#accounts/zone-text.ts';
import type { Dns } from '#operate/doctor/doctor-dns.ts';
import { type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import type { SendingAddress } from '#operate/doctor/sending-addresses.ts';
import { normalName } from '#platform/base/net/resolve.ts';
import { hostnameAdvice } from '#platform/settings/hostname-advice.ts';
import { isSameAddress, reverseName } from '#platform/values/reverse-name.ts';

/** Names for private networks (RFC 6762, RFC 8375, ICANN, common use), which no public DNS server knows. */
const privateEndings = /(^|\.)(local|localhost|localdomain|lan|internal|intranet|home|corp|home\.arpa)$/;

export function checkHostname(hostname: string): FindingDraft {
  const advice = hostnameAdvice({ hostname });
  if (advice) return failure(`"${hostname}" is not fully qualified`, advice);
  if (!privateEndings.test(hostname)) return ok('a fully qualified name');
  return failure(
    `${hostname} is a name for private networks`,
    'set POSTERN_HOSTNAME to a public name of this server, such as mail.example.org',
  );
}

export async function checkForwardName(
  dns: Dns,
  name: string,
  senders: SendingAddress[],
): Promise<FindingDraft> {
  const ours = senders.filter((sender) => sender.name === name).map(({ address }) => address);
  const found = await dns.addresses(name);
  const wanted = ours.map((address) => addressRecord(name, address));
  if (found.length === 0) {
    const advice = ours.length > 0 ? 'publish it' : "publish an A record with this server's public address";
    return failure('no A or AAAA record', advice, wanted);
  }
  const missing = ours.filter((address) => !found.some((one) => isSameAddress(one, address)));
  if (missing.length === 0) return ok(found.join(', '));
  return failure(
    `it resolves to ${found.join(', ')}, but mail is sent from ${missing.join(', ')}`,
    'publish these records too and remove those of other machines; or set POSTERN_HOSTNAME to the name of that address',
    missing.map((address) => addressRecord(name, address)),
  );
}

function addressRecord(name: string, address: string): ZoneRecord {
  return { type: address.includes(':') ? 'AAAA' : 'A', name, value: address };
}

/** Large receivers refuse addresses without a PTR record, and distrust those whose name does not resolve to them. */
export async function checkPtr(dns: Dns, { address, name }: SendingAddress): Promise<FindingDraft> {
  const found = (await dns.records<string>(reverseName(address), 'PTR')).map(normalName);
  const record = { type: 'PTR', name: reverseName(address), value: name };
  const advice = `set the reverse name of ${address} to ${name} at the provider of this server or its address`;
  if (found.length === 0) return failure('no PTR record', advice, [record]);
  // checkForwardName checks whether that name resolves to the address.
  if (found.includes(name)) return ok(found.join(', '));
  const confirmed = await Promise.all(
    found.map(async (one) => (await dns.addresses(one)).some((each) => isSameAddress(each, address))),
  );
  const names = found.join(', ');
  if (!confirmed.includes(true))
    return failure(`it is ${names}, which does not resolve to this address`, advice, [record]);
  return warning(`it is ${names}, which resolves to this address, but EHLO says ${name}`, advice, [record]);
}
