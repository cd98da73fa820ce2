/**
 * The client's address: that of the peer or, if the peer is a trusted proxy, the one that the proxy saw. Proxies on this
 * machine and those of POSTERN_HTTP_PROXIES are trusted; X-Forwarded-For from anyone else is ignored.
 */
import type { Middleware } from 'koa';

/** Stores the address in `context.state.client`. */
export function resolveClientAddress(proxies: readonly string[]): Middleware {
  return (context, next) => {
    const peer = context.req.socket.remoteAddress ?? '';
    context.state.client = clientAddressOf(peer, context.get('x-forwarded-for'), proxies);
    return next();
  };
}

/** A proxy appends the address that it saw to the list. */
export function clientAddressOf(
  socketAddress: string,
  forwardedFor: string,
  proxies: readonly string[],
): string {
  const peer = plain(socketAddress);
  const seen = isTrustedProxy(peer, proxies) ? forwardedFor.split(',').at(-1)!.trim() : '';
  return seen || peer;
}

export function isTrustedProxy(socketAddress: string, proxies: readonly string[]): boolean {
  const peer = plain(socketAddress);
  return peer === '::1' || peer.startsWith('127.') || proxies.includes(peer);
}

function plain(socketAddress: string): string {
  return socketAddress.replace(/^::ffff:(?=[\d.]+$)/, '');
}
