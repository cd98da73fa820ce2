/** Opens a TCP server, or says in one line what an operator can do about one that does not open. */
import type { Server } from 'node:net';

export class ListenError extends Error {}

/** Null: every address of the machine. */
type Host = string | null;

/** `names`: the settings that the address comes from. */
export function listening(
  server: Server,
  { host, port }: { host: Host; port: number },
  names: { host: string; port: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const where = host === null ? `port ${port}` : `${bracketed(host)}:${port}`;
      const advice: Record<string, string> = {
        EADDRINUSE: `${where} is in use; stop what listens there, or set ${names.port}`,
        EACCES: `${where} may not be listened on; ports below 1024 need a privilege, set ${names.port}`,
        EADDRNOTAVAIL: `${host} is no address of this machine; set ${names.host}`,
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

/** A host as it stands in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
