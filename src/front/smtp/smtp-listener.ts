/**
 * An SMTP port that receives mail: smtp-server with strict parsing (strict-stream.ts, smtp-connection.ts) and limits
 * (platform/base/limits/slots.ts, memory-budget.ts); a MailHandler decides about the mail. 250 is sent after the handler has
 * returned, which is after its commit.
 *
 * Memory: a few kilobytes per connection, and for messages what `memoryBudget` allows, whatever clients send.
 * Stop: idle clients get 421, incoming messages have two more seconds, decisions in progress are answered.
 */
import type { AddressInfo, Socket } from 'node:net';
import type { Certificate } from '#operate/certificates/listener-certificate.ts';
import type { ByteBudget } from '#platform/base/limits/byte-budget.ts';
import type { Slots } from '#platform/base/limits/slots.ts';
import { type MinimumRate, transferRate } from '#platform/base/minimum-rate.ts';
import { clientNetwork, matcherOf } from '#platform/base/net/client-network.ts';
import { listening } from '#platform/base/net/tcp-listen.ts';
import type { MailHandler } from '#platform/values/mail-handler.ts';
import { type SessionOptions, SessionServer } from '#platform/vendor/smtp-server.ts';
import type { Bounds } from './receive-message.ts';
import { callbacksOf, onUnreadOf } from './server-callbacks.ts';
import { type ConnectionPolicy, type ConnectionTimeouts, SmtpConnection } from './smtp-connection.ts';

export interface ListenerParts<User> {
  handler: MailHandler<User>;
  /** Null: all addresses of the machine. */
  host: string | null;
  port: number;
  /** The setting that the port comes from. */
  setting: string;
  /** Name in the greeting. */
  hostname: string;
  /** TLS from the first byte (RFC 8314) instead of STARTTLS. */
  implicitTls: boolean;
  certificate: Certificate;
  /** STARTTLS is then not offered, but accepted. */
  hidesStartTls?: boolean;
  /** Addresses and networks of proxies whose connections begin with a PROXY header. */
  proxies: string[];
  /** Allows logins without TLS, but only from loopback addresses. */
  allowClearLogin: boolean;
  bounds: Bounds;
  maxRecipients: number;
  /** In all, and of each client's network; of connections that have not logged in. */
  connectionSlots: Slots;
  /** In all, and of each organization that has logged in. */
  organizationSlots: Slots;
  /** The owners are organizations that have logged in, and networks of other clients. */
  memoryBudget: Pick<ByteBudget, 'open'>;
  timeouts?: ConnectionTimeouts;
  minimumRate?: MinimumRate;
  onError(what: string, error: unknown): void;
}

export interface MailListener {
  port: number;
  /** Stops accepting commands, answers those in progress, and resolves when no handler runs. */
  close(): Promise<void>;
}

const defaultTimeouts: ConnectionTimeouts = { stranger: 60_000, command: 300_000, message: 15 * 60_000 };

/** RFC 5321 section 4.5.3.1.4 says 512; extensions add to it, and an AUTH PLAIN login must fit. */
const longestCommand = 2048;

/** Time for incoming messages to complete after `close`. */
const graceMs = 2_000;

/** Time for clients to read the last reply and disconnect. */
const lingerMs = 500;

/** smtp-server's own limit for closing; longer than everything here. */
const closeTimeout = 30_000;

/** smtp-server's joke commands, and those with which a client changes the identity of its session. */
const disabledCommands = ['XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'];

export async function openListener<User>(parts: ListenerParts<User>): Promise<MailListener> {
  const running = new Set<Promise<unknown>>();
  const server = new Server(parts, running);
  // Errors of clients, such as failed handshakes and resets: the operator cannot fix them.
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

class Server<User> extends SessionServer<SmtpConnection> {
  readonly #parts: ListenerParts<User>;
  readonly #policy: ConnectionPolicy;
  readonly #isProxy: (address: string) => boolean;
  /** Frees the connection's slot when it closes. */
  readonly #release = new WeakMap<Socket, () => void>();

  constructor(parts: ListenerParts<User>, running: Set<Promise<unknown>>) {
    super({
      ...parts.certificate.current(),
      // The promise never rejects.
      SNICallback: (host: string, done) =>
        parts.certificate.contextOf(host).then((context) => done(null, context ?? undefined)),
      ...callbacksOf(parts, running),
      onConnect: (_, greet) => {
        const asked = parts.handler.largestMessage?.() ?? Promise.resolve(parts.bounds.largest);
        asked.then(
          (largest) => {
            this.largest = largest;
            greet();
          },
          (error) => {
            parts.onError('the largest size of a message is not known', error);
            greet();
          },
        );
      },
      name: parts.hostname,
      secure: parts.implicitTls,
      minVersion: 'TLSv1.2',
      logger: false,
      hideENHANCEDSTATUSCODES: false,
      // Only mail that we pass on can be promised TLS. It is offered over TLS only.
      hideSTARTTLS: parts.hidesStartTls === true,
      hideREQUIRETLS: parts.handler.authenticate === null,
      size: parts.bounds.largest,
      authMethods: ['PLAIN', 'LOGIN'],
      authOptional: parts.handler.authenticate === null,
      authRequiredMessage: '5.7.0 UNAUTHORIZED: Log in with an API key as the password.',
      // SmtpConnection decides per session whether a login without TLS is allowed.
      allowInsecureAuth: true,
      disabledCommands: [...disabledCommands, ...(parts.handler.authenticate ? [] : ['AUTH'])],
      disableReverseLookup: true,
      maxRecipients: parts.maxRecipients,
      // Limits the TLS handshake and silent connections; SmtpConnection has its own deadlines.
      socketTimeout: defaultTimeouts.command,
      closeTimeout,
    });
    this.#parts = parts;
    this.#isProxy = matcherOf(parts.proxies);
    this.#policy = {
      timeouts: parts.timeouts ?? defaultTimeouts,
      longestCommand,
      largestMessage: () => this.largest,
      maxRecipients: parts.maxRecipients,
      // A bounce or complaint is worth more than its line ends. An application's mail goes on to servers that refuse them.
      takesBareLf: parts.handler.authenticate === null,
      onUnread: onUnreadOf(parts.handler),
      minimumRate: parts.minimumRate ?? transferRate,
      mayLogIn: (isSecure, address) => isSecure || (parts.allowClearLogin && isLoopback(address)),
    };
  }

  protected override isProxy(address: string): boolean {
    return this.#isProxy(address);
  }

  protected override createSession(
    socket: Socket,
    options: SessionOptions | null | undefined,
    admitted: Socket,
  ): SmtpConnection {
    const leave = this.#release.get(admitted);
    return new SmtpConnection(this, socket, options, { ...this.#policy, leave });
  }

  dismiss(atOnce: boolean): void {
    for (const session of this.sessions) session.dismiss(atOnce);
  }

  protected override admit(socket: Socket, address: string): boolean {
    const free = this.#parts.connectionSlots.take(clientNetwork(address));
    if (typeof free === 'function') {
      socket.once('close', free);
      this.#release.set(socket, free);
      return true;
    }
    socket.on('error', () => {});
    if (this.#parts.implicitTls) socket.destroy();
    else socket.end(`421 4.7.0 ${tooMany[free]}. Retry later.\r\n`, () => socket.destroy());
    return false;
  }
}

const tooMany = { 'of one': 'Too many connections from your address', 'in all': 'Too many connections' };

async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

/** smtp-server reports IPv4-mapped addresses as IPv4. */
function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
