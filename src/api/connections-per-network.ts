/** Limits the connections of each client network (base/client-network.ts): one that has as many as it may gets no more. */
import type { Socket } from 'node:net';
import { clientNetwork } from '../base/client-network.ts';

/** For a server's `connection`. `isExempt`: by its address, such as a proxy's, through which many networks come. */
export function limitNetworks(max: number, isExempt: (address: string) => boolean): (socket: Socket) => void {
  const open = new Map<string, number>();
  return (socket) => {
    const { remoteAddress = '' } = socket;
    if (isExempt(remoteAddress)) return;
    const network = clientNetwork(remoteAddress);
    const before = open.get(network) ?? 0;
    if (before >= max) {
      socket.destroy();
      return;
    }
    open.set(network, before + 1);
    socket.once('close', () => {
      const left = open.get(network)! - 1;
      if (left > 0) open.set(network, left);
      else open.delete(network);
    });
  };
}
