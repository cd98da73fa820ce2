/**
 * Opens a connection to one address of a host. Refuses private addresses unless allowed, once more at this last
 * moment, whoever chose the address.
 */
import { isIPv6, type Socket } from 'node:net';
import type { Host } from './mx.ts';
import { mxConnect } from './mx-connect.ts';

export type Connect = (host: Host) => Promise<Socket>;

export function createConnect(options: { port: number; timeoutMs: number; allowPrivate: boolean }): Connect {
  return async ({ name, address }) => {
    const v6 = isIPv6(address);
    const { socket } = await mxConnect({
      target: name,
      mx: [{ exchange: name, A: v6 ? [] : [address], AAAA: v6 ? [address] : [] }],
      port: options.port,
      maxConnectTime: options.timeoutMs,
      dnsOptions: {
        blockLocalAddresses: !options.allowPrivate,
        blockReservedNetworks: !options.allowPrivate,
      },
    });
    return socket;
  };
}
