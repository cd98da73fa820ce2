/**
 * Who asks: the address of the peer, or, where that is a proxy which we believe, the one that the proxy saw. Believed
 * are proxies on this machine and those of POSTERN_HTTP_PROXIES; what anybody else writes into X-Forwarded-For is words.
 */
import type { Middleware } from 'koa';

/** Keeps it in `context.state.client`. */
export function resolveClientAddress(proxies: readonly string[]): Middleware {
  return (context, next) => {
    const peer = context.req.socket.remoteAddress ?? '';
    context.state.client = clientAddressOf(peer, context.get('x-forwarded-for'), proxies);
    return next();
  };
}

/** A proxy adds what it saw at the end of the list. */
export function clientAddressOf(
  socketAddress: string,
  forwardedFor: string,
  proxies: readonly string[],
): string {
  const peer = plain(socketAddress);
  const seen = isTrustedProxy(peer, proxies) ? forwardedFor.split(',').at(-1)!.trim() : '';
  return seen || peer;
}

/** Whether it is a proxy whose word counts. */
export function isTrustedProxy(socketAddress: string, proxies: readonly string[]): boolean {
  const peer = plain(socketAddress);
  return peer === '::1' || peer.startsWith('127.') || proxies.includes(peer);
}

function plain(socketAddress: string): string {
  return socketAddress.replace(/^::ffff:(?=[\d.]+$)/, '');
}
