/**
 * What an endpoint's URL may be. Addresses are looked at where they are written out; names when they are resolved, at
 * each connection (guarded-post.ts). WHATWG's parser makes dotted decimals of all the ways to write an IPv4 address.
 */
import { isIP } from 'node:net';
import { isForbidden } from '../vendor/mx-connect.ts';

const maxLength = 2048;

/** In the form in which it is kept, or what is wrong with it. */
export function parseWebhookUrl(text: string, allowPrivate: boolean): string | { fault: string } {
  const url = URL.parse(text.trim());
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    return { fault: `"${text}" is not a URL such as https://app.example.com/webhooks` };
  }
  if (url.href.length > maxLength) return { fault: `the URL is longer than ${maxLength} characters` };
  // They would stand in logs and answers; and the signature says who calls.
  if (url.username || url.password) return { fault: 'the URL has a user name or password; leave them out' };
  url.hash = '';
  const fault = allowPrivate ? null : faultOf(url);
  return fault === null ? url.href : { fault };
}

function faultOf(url: URL): string | null {
  const host = hostOf(url);
  if ((isIP(host) && isForbidden(host, false)) || isLocalhost(host)) {
    return `${host} is a private or special address, which POSTERN_WEBHOOK_ALLOW_PRIVATE=true would allow`;
  }
  // What else listens below 1024 speaks another protocol, and may take a body's lines for commands.
  const port = Number(url.port || 443);
  if (port < 1024 && ![80, 443].includes(port)) {
    return `port ${port} is for another protocol; there are 80, 443, and those from 1024 on`;
  }
  return null;
}

/** Without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

/** RFC 6761 section 6.3: these are this machine, and DNS is not asked for them. */
export function isLocalhost(host: string): boolean {
  return /(^|\.)localhost\.?$/i.test(host);
}
