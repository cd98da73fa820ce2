/**
 * Checks the URL of an endpoint. Literal IP addresses are checked here; names are checked when they are resolved, for each
 * connection (guarded-post.ts). The WHATWG parser normalizes every way to write an IPv4 address to dotted decimals.
 */
import { isIP } from 'node:net';
import { withoutHidden } from '#platform/values/hidden-characters.ts';
import { isForbidden } from '#platform/vendor/mx-connect.ts';
import type { WebhookFormatName } from './subscribed-types.ts';

/** The length of a text that is not a URL, in a refusal. */
const maxShown = 200;
const maxLength = 2048;

/** The formats whose posts are not signed. */
const unsigned: readonly WebhookFormatName[] = ['postmark', 'raw'];

export interface EndpointUrl {
  /** Without credentials, because it appears in logs and API responses. */
  url: string;
  /** "user:password" for Basic authentication, or empty. */
  credentials: string;
}

/** The URL as it is stored, or what is wrong with it. Only a format without a signature can have credentials in its URL. */
export function parseWebhookUrl(
  text: string,
  allowPrivate: boolean,
  format: WebhookFormatName = 'standard',
): EndpointUrl | { problem: string } {
  const hidden = withoutHidden(text);
  const url = hidden === '' ? URL.parse(text.trim()) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    return {
      problem: `"${text.slice(0, maxShown)}" is not a URL such as https://app.example.com/webhooks${hidden}`,
    };
  }
  if (url.href.length > maxLength) return { problem: `the URL is longer than ${maxLength} characters` };
  const credentials = url.username || url.password ? `${decode(url.username)}:${decode(url.password)}` : '';
  if (credentials !== '' && !unsigned.includes(format))
    return {
      problem:
        'the URL has a user name or password; leave them out, because the signature authenticates posts',
    };
  url.hash = '';
  url.username = '';
  url.password = '';
  const problem = allowPrivate ? null : problemOf(url, 'POSTERN_WEBHOOK_ALLOW_PRIVATE');
  return problem === null ? { url: url.href, credentials } : { problem };
}

/** A "%" that escapes nothing stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `setting` would allow what is refused here. */
export function problemOf(url: URL, setting: string): string | null {
  const host = hostOf(url);
  if ((isIP(host) && isForbidden(host, false)) || isLocalhost(host)) {
    return `${host} is a private or special address, which ${setting}=true would allow`;
  }
  // Other services on ports below 1024 speak other protocols and might take lines of the body for commands.
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

/** RFC 6761 section 6.3: these names mean this machine and are never looked up in DNS. */
export function isLocalhost(host: string): boolean {
  return /(^|\.)localhost\.?$/i.test(host);
}
