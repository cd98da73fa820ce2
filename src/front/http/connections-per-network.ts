/** Limits the open connections of each client network (platform/base/net/client-network.ts); connections beyond that are closed. */
import type { Socket } from 'node:net';
import { Slots } from '#platform/base/limits/slots.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';

/** A listener for a server's `connection`. A proxy's address is exempt, because many networks connect through it. */
export function limitNetworks(max: number, isExempt: (address: string) => boolean): (socket: Socket) => void {
  const slots = new Slots({ ofOne: max });
  return (socket) => {
    const { remoteAddress = '' } = socket;
    if (isExempt(remoteAddress)) return;
    const free = slots.take(clientNetwork(remoteAddress));
    if (typeof free === 'function') socket.once('close', free);
    else socket.destroy();
  };
}
