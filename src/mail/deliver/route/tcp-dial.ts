/** Opens one TCP connection to one address, from one of our addresses, with a timeout and an abort signal. */
import { connect, type Socket } from 'node:net';
import { NoSource } from '#platform/values/ip-pool.ts';

export interface Call {
  address: string;
  port: number;
  /** Our own address; undefined: the system chooses. */
  from: string | undefined;
  timeoutMs: number;
}

/**
 * Rejects with a NoSource if the system has no socket left. The socket keeps one listener of ours for errors, because an
 * error before its new owner listens would end the process; that listener destroys the socket.
 */
export function dial({ address, port, from, timeoutMs }: Call, over: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, localAddress: from, noDelay: true });
    const end = () => {
      clearTimeout(timer);
      over.removeEventListener('abort', stop);
    };
    const fail = (error: NodeJS.ErrnoException) => {
      end();
      socket.destroy();
      const shortage = shortages[error.code ?? ''];
      reject(shortage ? new NoSource(shortage, { cause: error }) : error);
    };
    const stop = () => fail(over.reason);
    const overdue = () => fail(new Error(`did not answer within ${timeoutMs / 1000} s`));
    const timer = setTimeout(overdue, timeoutMs);
    over.addEventListener('abort', stop, { once: true });
    socket.on('error', fail);
    socket.once('connect', () => {
      end();
      resolve(socket);
    });
  });
}

const shortages: Record<string, string> = {
  EMFILE: 'cannot be called: too many files are open; raise the limit of Postern (LimitNOFILE, ulimit -n)',
  ENFILE: 'cannot be called: too many files are open on the machine (fs.file-max)',
  ENOBUFS: 'cannot be called: the system has no memory left for connections',
  ENOMEM: 'cannot be called: the system has no memory left for connections',
};

const failures: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'reset the connection',
  EHOSTUNREACH: 'cannot be reached (no route to the host)',
  ENETUNREACH: 'cannot be reached (no route to its network)',
  ETIMEDOUT: 'did not answer',
  EACCES: 'was not called: the connection is forbidden by this machine, such as by its firewall',
  EPERM: 'was not called: the connection is forbidden by this machine, such as by its firewall',
  ENETDOWN: 'was not called: the network is taken down by this machine',
  EADDRNOTAVAIL: 'cannot be reached (no address or port of ours for it)',
};

/** The failure, as a predicate that follows the address. */
export function failureText(error: NodeJS.ErrnoException): string {
  if (error.code === undefined) return error.message;
  return failures[error.code] ?? `cannot be connected to (${error.code})`;
}
