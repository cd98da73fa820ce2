/**
 * Who may read the metrics. With a token set: who brings it, and nobody else. Without one: who connects from this very
 * machine, and is not a proxy speaking for somebody else. A proxy here makes everybody's address a loopback one, so a
 * request that says it was forwarded is refused, and one whose Host is no name of loopback: that is a proxy that keeps
 * the Host, or a page in a browser here whose name was pointed at us (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

/** unknown: as if there were nothing; asked: for the token. */
export type MetricsAccess = 'granted' | 'unknown' | 'asked';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const isLoopback = (address: string) => loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

const ofProxies = /^(forwarded|via|x-real-ip|x-forwarded-.*|cf-connecting-ip|true-client-ip)$/;

export function accessOf(request: IncomingMessage, token: string | null): MetricsAccess {
  if (token !== null) return hasToken(request.headers.authorization, token) ? 'granted' : 'asked';
  const { headers, socket } = request;
  if (socket.remoteAddress === undefined || !isLoopback(socket.remoteAddress)) return 'unknown';
  if (Object.keys(headers).some((name) => ofProxies.test(name))) return 'unknown';
  return isHostHere(headers.host) ? 'granted' : 'unknown';
}

/** Of the same length, so that the time it takes tells nothing. */
function hasToken(authorization: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string) => createHash('sha256').update(text).digest();

function isHostHere(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase();
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}
