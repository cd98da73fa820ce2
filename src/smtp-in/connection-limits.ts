/**
 * Limits connections in total and per client: an IPv4 address or an IPv6 /64, the smallest network that a provider assigns
 * to one customer (RFC 6177).
 */
import { isIPv6 } from 'node:net';

export interface ConnectionLimits {
  /** Counts a connection until the returned function is called. Returns the reason instead if a limit is reached. */
  enter(address: string): (() => void) | string;
  size(): number;
}

export function createConnectionLimits({
  max,
  perClient,
}: {
  max: number;
  perClient: number;
}): ConnectionLimits {
  const clients = new Map<string, number>();
  let all = 0;
  return {
    size: () => all,
    enter(address) {
      const client = clientOf(address);
      const own = clients.get(client) ?? 0;
      if (own >= perClient) return 'Too many connections from your address';
      if (all >= max) return 'Too many connections';
      clients.set(client, own + 1);
      all += 1;
      let isCounted = true;
      return () => {
        if (!isCounted) return;
        isCounted = false;
        all -= 1;
        const left = clients.get(client)! - 1;
        if (left > 0) clients.set(client, left);
        else clients.delete(client);
      };
    },
  };
}

export function clientOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const front = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - front.length - (tail === '' ? 0 : tail.split(':').length);
  const groups = [...front, ...Array.from({ length: missing }, () => '0'), ...(tail?.split(':') ?? [])];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
