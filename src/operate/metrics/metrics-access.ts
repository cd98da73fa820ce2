/**
 * Decides who may read the metrics. If a token is configured, only requests with it. Otherwise only requests from this
 * machine, but not those that a proxy on this machine forwards, because they come from a loopback address too. So a
 * request is refused if it has a header of a proxy, or if its Host is not a loopback name: then it comes from a proxy that
 * keeps the Host, or from a web page in a local browser whose name resolves to loopback (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';

/** hidden: answered like a path that does not exist; unauthorized: the token is missing or wrong. */
export type MetricsAccess = 'granted' | 'hidden' | 'unauthorized';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const isLoopback = (address: string) => loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

const proxyHeaders = /^(forwarded|via|x-real-ip|x-forwarded-.*|cf-connecting-ip|true-client-ip)$/;

export function accessOf(request: IncomingMessage, token: string | null): MetricsAccess {
  if (token !== null) return hasToken(request.headers.authorization, token) ? 'granted' : 'unauthorized';
  const { headers, socket } = request;
  if (socket.remoteAddress === undefined || !isLoopback(socket.remoteAddress)) return 'hidden';
  if (Object.keys(headers).some((name) => proxyHeaders.test(name))) return 'hidden';
  return isHostHere(headers.host) ? 'granted' : 'hidden';
}

/** Compares digests, because they have the same length and the time then reveals nothing. */
function hasToken(authorization: string | undefined, token: string): boolean {
  const sent = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  return sent !== undefined && timingSafeEqual(digest(sent), digest(token));
}

const digest = (text: string) => createHash('sha256').update(text).digest();

function isHostHere(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase();
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}
