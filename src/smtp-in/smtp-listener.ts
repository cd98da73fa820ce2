/**
 * A port that takes mail over SMTP: smtp-server, made strict (strict-stream.ts, smtp-connection.ts) and bounded
 * (connection-limits.ts, memory-budget.ts), in front of a MailHandler that decides. 250 is said when the handler has returned, which is
 * after its commit.
 *
 * Memory: a connection holds some kilobytes, messages what `intake` gives them, whatever clients send.
 * Stopping: idle clients are told 421, messages that come in have a moment more, those being decided are answered.
 */
import type { AddressInfo, Socket } from 'node:net';
import { SMTPServer } from 'smtp-server';
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import { type MinimumRate, transferRate } from '../base/minimum-rate.ts';
import { listening } from '../base/tcp-listen.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import type { Certificate } from './listener-certificate.ts';
import type { MailHandler } from './mail-handler.ts';
import type { MemoryBudget } from './memory-budget.ts';
import type { Bounds } from './receive-message.ts';
import { callbacksOf } from './server-callbacks.ts';
import { type ConnectionPolicy, type ConnectionTimeouts, SmtpConnection } from './smtp-connection.ts';

export interface ListenerParts<User> {
  handler: MailHandler<User>;
  /** Null: every address of the machine. */
  host: string | null;
  port: number;
  /** The setting that the port comes from. */
  setting: string;
  /** The name that it greets with. */
  hostname: string;
  /** TLS from the first octet (RFC 8314), not by STARTTLS. */
  implicitTls: boolean;
  certificate: Certificate;
  /** Whose connections begin with a PROXY header. */
  proxies: string[];
  /** Whether passwords may be sent in clear, from loopback alone. */
  allowClearLogin: boolean;
  bounds: Bounds;
  maxRecipients: number;
  maxClients: number;
  crowd: ConnectionLimits;
  intake: MemoryBudget;
  patience?: ConnectionTimeouts;
  minimumRate?: MinimumRate;
  onError(what: string, error: unknown): void;
}

export interface MailListener {
  port: number;
  /** Answers what is being decided, takes nothing more, and returns when no handler runs. */
  close(): Promise<void>;
}

const defaultTimeouts: ConnectionTimeouts = { stranger: 60_000, command: 300_000, message: 15 * 60_000 };

/** RFC 5321 section 4.5.3.1.4 has 512, the extensions some more, and a login by AUTH PLAIN fits. */
const longestCommand = 2048;

/** Messages that come in when it closes are given this long. */
const graceMs = 2_000;

/** And clients this long to read the last reply and hang up. */
const lingerMs = 500;

/** The last resort of the library's own closing, beyond everything here. */
const closeTimeout = 30_000;

/** Commands that are toys, or that hand a session over to somebody else. */
const disabledCommands = ['XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'];

export async function openListener<User>(parts: ListenerParts<User>): Promise<MailListener> {
  const running = new Set<Promise<unknown>>();
  const server = new Server(parts, running);
  // A client's trouble: a handshake that failed, a connection that was reset. Nothing that an operator could mend.
  server.on('error', () => {});
  const forget = parts.certificate.onChange((secure) => server.updateSecureContext(secure));
  await listening(server.server, parts, { host: 'POSTERN_SMTP_HOST', port: parts.setting });
  return {
    port: (server.server.address() as AddressInfo).port,
    async close() {
      forget();
      const closed = new Promise<void>((resolve) => server.close(resolve));
      server.dismiss(false);
      await within(graceMs, closed);
      server.dismiss(true);
      await Promise.allSettled(running);
      await within(lingerMs, closed);
    },
  };
}

class Server<User> extends SMTPServer {
  readonly #parts: ListenerParts<User>;
  readonly #manners: ConnectionPolicy;
  /** Each connection's place in the crowd, which it leaves when it closes. */
  readonly #places = new WeakMap<Socket, () => void>();

  constructor(parts: ListenerParts<User>, running: Set<Promise<unknown>>) {
    super({
      ...parts.certificate.current(),
      ...callbacksOf(parts, running),
      name: parts.hostname,
      secure: parts.implicitTls,
      minVersion: 'TLSv1.2',
      logger: false,
      hideENHANCEDSTATUSCODES: false,
      size: parts.bounds.largest,
      authMethods: ['PLAIN', 'LOGIN'],
      authOptional: parts.handler.authenticate === null,
      authRequiredMessage: '5.7.0 UNAUTHORIZED: log in with an API key as the password',
      // Who may log in without TLS is decided for each conversation.
      allowInsecureAuth: true,
      disabledCommands: [...disabledCommands, ...(parts.handler.authenticate ? [] : ['AUTH'])],
      disableReverseLookup: true,
      useProxy: parts.proxies.length > 0 ? parts.proxies : false,
      maxClients: parts.maxClients,
      maxRecipients: parts.maxRecipients,
      // For the handshake, and where nothing at all comes; the conversation has its own deadlines.
      socketTimeout: defaultTimeouts.command,
      closeTimeout,
    });
    this.#parts = parts;
    this.#manners = {
      patience: parts.patience ?? defaultTimeouts,
      longestCommand,
      largestMessage: parts.bounds.largest,
      minimumRate: parts.minimumRate ?? transferRate,
      mayLogIn: (isSecure, address) => isSecure || (parts.allowClearLogin && isLoopback(address)),
    };
  }

  /** Before the TLS handshake, whose end a client may keep us waiting for. A proxy's clients are counted below. */
  override _acceptSocket(socket: Socket, handshake: boolean): (() => void) | false {
    if (!this._expectsProxyHeader(socket) && !this.#admit(socket, socket.remoteAddress ?? '')) return false;
    return super._acceptSocket(socket, handshake);
  }

  override connect(socket: Socket, options?: SMTPConnectionOptions | null): void {
    if (options?.remoteAddress && !this.#admit(socket, options.remoteAddress)) return;
    const leave = this.#places.get(socket);
    const connection = new SmtpConnection(this, socket, options, { ...this.#manners, leave });
    this.connections.add(connection);
    connection.on('error', (error) => this._onError(error));
    connection.init();
  }

  dismiss(atOnce: boolean): void {
    for (const connection of this.connections) (connection as SmtpConnection).dismiss(atOnce);
  }

  #admit(socket: Socket, address: string): boolean {
    const place = this.#parts.crowd.enter(address);
    if (typeof place === 'function') {
      socket.once('close', place);
      this.#places.set(socket, place);
      return true;
    }
    socket.on('error', () => {});
    if (this.#parts.implicitTls) socket.destroy();
    else socket.end(`421 4.7.0 ${place}; try again shortly\r\n`, () => socket.destroy());
    return false;
  }
}

async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

/** The library gives an IPv4 address as such, whatever the socket says. */
function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
