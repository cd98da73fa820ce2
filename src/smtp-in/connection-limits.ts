/** Limits connections in total and per client network (base/client-network.ts). */
import { clientNetwork } from '../base/client-network.ts';

export function createConnectionLimits({ max, perClient }: { max: number; perClient: number }) {
  const clients = new Map<string, number>();
  let all = 0;
  return {
    size: () => all,
    /** Counts a connection until the returned function is called. Returns the reason instead if a limit is reached. */
    enter(address: string): (() => void) | string {
      const client = clientNetwork(address);
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

export type ConnectionLimits = ReturnType<typeof createConnectionLimits>;
