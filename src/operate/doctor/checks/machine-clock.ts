/** Compares the server's clock with time servers: signatures, certificates and logs depend on it. */
import { isIP } from 'node:net';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { askTime } from '#operate/doctor/sntp.ts';

const noticeableMs = 2_000;
/** Some receivers refuse signatures from the future, and links and certificates may be expired or not yet valid. */
const harmfulMs = 60_000;

const advice = 'synchronize the clock: `timedatectl set-ntp true`, or install chrony';

/** Uses the answer of the first server that answers. */
export async function checkClock({ dns, surroundings, now }: DoctorContext): Promise<FindingDraft> {
  const { timeServers, timeouts } = surroundings;
  const asked = timeServers.map(async (server) => {
    const at = server.lastIndexOf(':');
    const host = server.slice(0, at);
    const [address] = isIP(host) ? [host] : await dns.records<string>(host, 'A');
    if (address === undefined) throw new Error(`${host} has no address`);
    const target = { address, port: Number(server.slice(at + 1)) };
    return { host, behindMs: await askTime(target, now, timeouts.time) };
  });
  const answer = await Promise.any(asked).catch(() => null);
  if (answer === null) return skipped(`not known: no answer from ${timeServers.join(', ')}`);
  const { host, behindMs } = answer;
  const distance = Math.abs(behindMs);
  const seconds = `${(distance / 1000).toFixed(1)} s`;
  if (distance < noticeableMs) return ok(`correct, according to ${host}`);
  const found = `${seconds} ${behindMs > 0 ? 'behind' : 'ahead of'} ${host}`;
  return distance < harmfulMs ? warning(found, advice) : failure(found, advice);
}
