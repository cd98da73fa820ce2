/** Measures how far the local clock is from a time server (SNTP, RFC 4330), with one UDP request. */
import { randomBytes } from 'node:crypto';
import dgram from 'node:dgram';
import { isIPv6 } from 'node:net';

/** Seconds from 1900, the NTP epoch, to 1970. */
const ntpEpochOffset = 2_208_988_800;
const packetLength = 48;
/** No leap warning, version 4, a client. */
const firstByte = 0x23;

/** In milliseconds; positive if our clock is behind. Rejects if no valid answer comes in time. */
export function askTime(
  { address, port }: { address: string; port: number },
  now: () => number,
  timeoutMs: number,
): Promise<number> {
  const socket = dgram.createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const question = Buffer.alloc(packetLength);
  question[0] = firstByte;
  // A random number instead of our time: the answer must repeat it, and it reveals nothing.
  const token = randomBytes(8);
  token.copy(question, 40);
  const sentAt = now();
  let timer: NodeJS.Timeout;
  return new Promise<number>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('did not answer')), timeoutMs);
    socket.on('error', reject);
    socket.on('message', (answer) => {
      if (!isGood(answer, token)) return;
      const receivedAt = now();
      resolve((timeAt(answer, 32) - sentAt + (timeAt(answer, 40) - receivedAt)) / 2);
    });
    socket.connect(port, address, ((error?: Error) =>
      error ? reject(error) : socket.send(question, (failed) => failed && reject(failed))) as () => void);
  }).finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

/** From a server (mode 4) that is synchronized (stratum 1 to 15), in answer to this request. */
function isGood(answer: Buffer, token: Buffer): boolean {
  const stratum = answer[1] ?? 0;
  return (
    answer.length >= packetLength &&
    (answer[0]! & 7) === 4 &&
    stratum > 0 &&
    stratum < 16 &&
    answer.subarray(24, 32).equals(token)
  );
}

/** From 2036 on, the highest bit is 0 (RFC 4330 section 3). */
function timeAt(packet: Buffer, at: number): number {
  const seconds = packet.readUInt32BE(at);
  const era = seconds < 2 ** 31 ? 2 ** 32 : 0;
  return (seconds + era - ntpEpochOffset + packet.readUInt32BE(at + 4) / 2 ** 32) * 1000;
}
