/** Limits the open connections of each client network (base/client-network.ts); connections beyond that are closed. */
import type { Socket } from 'node:net';
import { clientNetwork } from '../base/client-network.ts';

/** A listener for a server's `connection`. A proxy's address is exempt, because many networks connect through it. */
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
