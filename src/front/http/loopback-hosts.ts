/**
 * Refuses requests whose Host is not a name or address of this machine, for `postern dev`. Any website can make its own name
 * resolve to 127.0.0.1 (DNS rebinding), and browsers then take this server for a part of that site.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export function onlyForLoopbackHosts(handler: Handler): Handler {
  return async (request, response) => {
    const { host } = request.headers;
    // HTTP/1.0 has requests without it, and no browser makes them.
    if (host === undefined || isLoopbackHost(host)) return handler(request, response);
    const message = 'This development server answers only at 127.0.0.1 and localhost.';
    response.writeHead(421, { 'Content-Type': 'application/json; charset=utf-8', Connection: 'close' });
    response.end(JSON.stringify({ error: 'BAD_REQUEST', message, issues: [] }));
  };
}

/** Names below localhost are this machine, too (RFC 6761 section 6.3). */
function isLoopbackHost(host: string): boolean {
  if (!/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  return /^(127(\.\d+){3}|\[::1\]|([\w-]+\.)*localhost)\.?$/.test(hostname);
}
