/**
 * The client's address: that of the peer or, if the peer is a trusted proxy, the last one in X-Forwarded-For that is not a
 * trusted proxy's, too. A client can write whatever it wants before that one. Proxies on this machine and those of
 * POSTERN_HTTP_PROXIES are trusted. `Forwarded` (RFC 7239) is not read: a proxy that writes X-Forwarded-For passes it on as
 * the client sent it.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Context, Middleware } from 'koa';
import { matcherOf } from './client-network.ts';

type IsTrusted = (address: string) => boolean;

/** Stores the address in `context.state.client`. */
export function resolveClientAddress(isTrusted: IsTrusted): Middleware {
  return (context, next) => {
    const peer = context.req.socket.remoteAddress ?? '';
    context.state.client = clientAddressOf(peer, context.get('x-forwarded-for'), isTrusted);
    return next();
  };
}

export function clientAddress(context: Context): string {
  return context.state.client;
}

const thisMachine = ['127.0.0.0/8', '::1'];

/** `networks`: those of POSTERN_HTTP_PROXIES. */
export function trustedProxies(networks: readonly string[]): IsTrusted {
  return matcherOf([...thisMachine, ...networks]);
}

/**
 * Each proxy appends the address that it saw. If what a trusted proxy has written cannot be read, the peer stands for the
 * client, because everything further left may be the client's own words.
 */
export function clientAddressOf(socketAddress: string, forwardedFor: string, isTrusted: IsTrusted): string {
  const peer = hopAddress(socketAddress) ?? socketAddress;
  if (forwardedFor === '' || !isTrusted(peer)) return peer;
  let client = peer;
  let end = forwardedFor.length;
  while (end >= 0 && isTrusted(client)) {
    const comma = forwardedFor.lastIndexOf(',', end - 1);
    const hop = forwardedFor.slice(comma + 1, end).trim();
    end = end === 0 ? -1 : comma;
    if (hop === '') continue;
    const address = hopAddress(hop);
    if (address === null) return peer;
    client = address;
  }
  return client;
}

/** RFC 7239 section 6: an address, also in quotes, in brackets, with a port or a zone; null for other names. */
function hopAddress(hop: string): string | null {
  // There is one way to write it, and most proxies are at 127.0.0.1.
  if (isIP(hop) === 4) return hop;
  const text = /^"(.*)"$/.exec(hop)?.[1] ?? hop;
  const withPort = /^\[([^\]]*)\](?::[\w.-]+)?$|^([\d.]+):[\w.-]+$/.exec(text);
  const address = (withPort?.[1] ?? withPort?.[2] ?? text).split('%', 1)[0]!;
  // ipaddr.js also accepts notations of other kinds, such as an address in octal.
  return isIP(address) === 0 ? null : ipaddr.process(address).toString();
}
