/** Opens a TCP server. If that fails, the error says in one line what the operator can do. */
import type { Server } from 'node:net';

export class ListenError extends Error {}

/** A null host means all addresses of the machine. `names` are the settings that the address comes from. */
export function listening(
  server: Server,
  { host, port }: { host: string | null; port: number },
  names: { host: string; port: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const where = host === null ? `port ${port}` : `${bracketed(host)}:${port}`;
      const advice: Record<string, string> = {
        EADDRINUSE: `${where} is in use; stop the program that listens there, or set ${names.port}`,
        EACCES: `no permission to listen on ${where}: ports below 1024 need a privilege; set ${names.port}`,
        EADDRNOTAVAIL: `${host} is not an address of this machine; set ${names.host}`,
      };
      reject(new ListenError(advice[error.code ?? ''] ?? `cannot listen on ${where}: ${error.message}`));
    };
    server.once('error', failed);
    server.listen({ port, host: host ?? undefined }, () => {
      server.removeListener('error', failed);
      resolve();
    });
  });
}

/** A host as it is written in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
