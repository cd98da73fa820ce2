/** One TCP connection to one address, from one address of ours, within a time; called off by a signal. */
import { connect, type Socket } from 'node:net';

export interface Call {
  address: string;
  port: number;
  /** Our end; undefined: the system's choice. */
  from: string | undefined;
  timeoutMs: number;
}

/**
 * The socket keeps one listener of ours, for errors: without any, one that comes before its new owner listens would
 * bring the process down. The socket is destroyed then.
 */
export function dial({ address, port, from, timeoutMs }: Call, over: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, localAddress: from, noDelay: true });
    const end = () => {
      clearTimeout(timer);
      over.removeEventListener('abort', stop);
    };
    const fail = (error: Error) => {
      end();
      socket.destroy();
      reject(error);
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

const troubles: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'reset the connection',
  EHOSTUNREACH: 'cannot be reached (no route to the host)',
  ENETUNREACH: 'cannot be reached (no route to its network)',
  ETIMEDOUT: 'did not answer',
  EADDRNOTAVAIL: 'cannot be reached (no address or port of ours for it)',
};

/** What the machine has no more of, for whatever address. */
const shortages: Record<string, string> = {
  EMFILE: 'cannot be called: Postern has as many files open as it may; raise its limit (LimitNOFILE, ulimit -n)',
  ENFILE: 'cannot be called: the machine has as many files open as it may (fs.file-max)',
  ENOBUFS: 'cannot be called: the system has no memory left for connections',
  ENOMEM: 'cannot be called: the system has no memory left for connections',
};

/** Whether there was no call, for want of something of ours. */
export function isShortage({ code }: NodeJS.ErrnoException): boolean {
  return code !== undefined && code in shortages;
}

/** What befell a call, to be read after the address. */
export function troubleOf(error: NodeJS.ErrnoException): string {
  if (error.code === undefined) return error.message;
  return troubles[error.code] ?? shortages[error.code] ?? `cannot be connected to (${error.code})`;
}
