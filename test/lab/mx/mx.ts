/**
 * The other side of every delivery: a mail exchanger on real sockets that does what RFC 5321 asks of a strict
 * server, or misbehaves as it is told. This file listens and keeps the books; the protocol is written by hand in
 * mx-conversation.ts, because no proper server can hang, lie, or break off in the middle; the types of a script and of
 * what is kept are in mx-script.ts.
 *
 * What it says is decided, phase by phase, by the first of these that has an answer:
 *   1. the script: `startMx({ script: { rcpt: ({ attempt }) => (attempt < 3 ? '451 4.7.1 later' : undefined) } })`;
 *      `mx.script = {}` changes it while running;
 *   2. the local part of a recipient (up to a '+'): unknown@ full@ tempfail@ greylist@ drop-in-data@ drop-after-dot@;
 *   3. the protocol: every address and message is welcome.
 *
 * A message is kept once its final dot has come, unless the answer was 4xx or 5xx; where no answer was given it is
 * kept with `reply: null`, for such a client cannot know. A script that throws is an unhandled rejection, so the
 * test run fails. Parameters of extensions that were not offered are refused (555), as strict servers do.
 */
import { once } from 'node:events';
import net from 'node:net';
import { freePort } from '../load/ports.ts';
import { until } from '../until.ts';
import { Conversation, mxPem } from './mx-conversation.ts';
import type { MxMessage, MxSession, Script, TlsSide } from './mx-script.ts';

export { mxPem };

export interface MxOptions {
  /** Any 127.0.0.x. */
  host?: string;
  port?: number;
  hostname?: string;
  /**
   * true: STARTTLS with test/fixtures/mx.pem. false: not offered. 'broken': offered and begun with 220, then the
   * handshake is answered with rubbish. 'refused': offered, then 454. TlsSide: as it says.
   */
  tls?: boolean | 'broken' | 'refused' | TlsSide;
  /** Certificate, chain and key instead of mx.pem. */
  pem?: Buffer;
  /** EHLO lines, STARTTLS apart. */
  extensions?: string[];
  script?: Script;
}

export interface Mx {
  host: string;
  port: number;
  script: Script;
  messages: MxMessage[];
  sessions: MxSession[];
  /** Open now. */
  readonly connections: number;
  /** The most that were open at once. */
  readonly maxConnections: number;
  /** Waits until `n` messages have come in all. Rejects with the transcripts of what came instead. */
  received(n: number, timeoutMs?: number): Promise<MxMessage[]>;
  close(): Promise<void>;
}

const extensionsByDefault = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'ENHANCEDSTATUSCODES', 'SIZE 26214400'];

export async function startMx(options: MxOptions = {}): Promise<Mx> {
  const { host = '127.0.0.1', hostname = 'mx.invalid' } = options;
  const { tls = true, extensions = extensionsByDefault, script = {}, pem = mxPem } = options;
  const sockets = new Set<net.Socket>();
  let maxConnections = 0;

  const port = options.port || (await freePort(host));
  const server = net.createServer({ noDelay: true }).listen(port, host);
  await once(server, 'listening');

  const mx: Mx = {
    host,
    port,
    script,
    messages: [],
    sessions: [],
    get connections() {
      return sockets.size;
    },
    get maxConnections() {
      return maxConnections;
    },
    async received(n, timeoutMs) {
      const what = () =>
        `${n} messages at ${host}, there are ${mx.messages.length}\n${transcripts(mx.sessions)}`;
      await until(() => mx.messages.length >= n, { timeout: timeoutMs, what });
      return mx.messages;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };

  const attempts = new Map<string, number>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    maxConnections = Math.max(maxConnections, sockets.size);
    socket.on('close', () => sockets.delete(socket));
    new Conversation(socket, { mx, hostname, tls, pem, extensions, attempts });
  });
  return mx;
}

/**
 * One MX on each of the addresses, all at one port, as production finds every host at port 25. A host may be given
 * as options of its own. Linux answers at all of 127.0.0.0/8; macOS wants an alias on lo0 for each address.
 */
export async function startMxs(hosts: (string | MxOptions)[], options: MxOptions = {}): Promise<Mx[]> {
  for (let attempt = 1; ; attempt++) {
    const mxs: Mx[] = [];
    try {
      for (const host of hosts) {
        const own = typeof host === 'string' ? { host } : host;
        mxs.push(await startMx({ ...options, ...own, port: mxs[0]?.port ?? options.port }));
      }
      return mxs;
    } catch (error) {
      await Promise.all(mxs.map((mx) => mx.close()));
      // The port the first address got is taken at another: try the next one.
      if (attempt === 20 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

function transcripts(sessions: MxSession[]): string {
  return sessions.map(({ id, transcript }) => [`connection ${id}`, ...transcript].join('\n  ')).join('\n');
}
