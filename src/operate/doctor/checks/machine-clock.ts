/** The machine's clock against time servers: signatures, certificates and logs carry its time. */
import { isIP } from 'node:net';
import type { Dns } from '../doctor-dns.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';
import { askTime } from '../sntp.ts';

interface TimeParts {
  dns: Dns;
  timeServers: string[];
  now: () => number;
  timeoutMs: number;
}

const noticeableMs = 2_000;
/** A signature from the future is refused by some, and so are links and certificates of another day. */
const harmfulMs = 60_000;

const mend = 'synchronize the clock: `timedatectl set-ntp true`, or install chrony';

/** The first server that answers is believed. */
export async function checkClock({ dns, timeServers, now, timeoutMs }: TimeParts): Promise<FindingDraft> {
  const asked = timeServers.map(async (server) => {
    const at = server.lastIndexOf(':');
    const host = server.slice(0, at);
    const [address] = isIP(host) ? [host] : await dns.records<string>(host, 'A');
    if (address === undefined) throw new Error(`${host} has no address`);
    return {
      host,
      behindMs: await askTime({ address, port: Number(server.slice(at + 1)) }, now, timeoutMs),
    };
  });
  const answer = await Promise.any(asked).catch(() => null);
  if (answer === null) return skipped(`not known: no answer from ${timeServers.join(', ')}`);
  const { host, behindMs } = answer;
  const distance = Math.abs(behindMs);
  const seconds = `${(distance / 1000).toFixed(1)} s`;
  if (distance < noticeableMs) return ok(`correct, according to ${host}`);
  const found = `${seconds} ${behindMs > 0 ? 'behind' : 'ahead of'} ${host}`;
  return distance < harmfulMs ? warning(found, mend) : failure(found, mend);
}
