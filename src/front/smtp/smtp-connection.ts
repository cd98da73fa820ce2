/**
 * One SMTP session: smtp-server's, with stricter rules. A reply uses the enhanced code that its text begins with, or else
 * the library's. AUTH is offered only if it would be accepted. A client is disconnected if it is slow, makes many errors or
 * sends many commands that lead to no mail. On a stop it gets 421, but only when no command of its is being decided.
 *
 * Timeouts run on the real clock, because they are network timeouts.
 */
import type { Socket } from 'node:net';
import type { SMTPServer, SMTPServerSession } from 'smtp-server';
import type { MinimumRate } from '#platform/base/minimum-rate.ts';
import { ClientSession, type SessionOptions } from '#platform/vendor/smtp-server.ts';
import { type Path, readPath, readReversePath } from './path.ts';
import { type StreamViolation, StrictStream } from './strict-stream.ts';

export interface ConnectionTimeouts {
  /** Until the next command of a client that has neither logged in nor named a recipient. */
  stranger: number;
  /** Until the next command of any other client (RFC 5321 section 4.5.3.2.7: five minutes). */
  command: number;
  /** The time limit of a whole message. */
  message: number;
}

export interface ConnectionPolicy {
  timeouts: ConnectionTimeouts;
  /** Bytes of a command line, its CRLF included. */
  longestCommand: number;
  largestMessage(): number;
  maxRecipients: number;
  /** See strict-stream.ts. */
  takesBareLf: boolean;
  /** Minimum transfer rate of a message. */
  minimumRate: MinimumRate;
  /** Whether this client may log in: over TLS, or if clear text is allowed. */
  mayLogIn(isSecure: boolean, address: string): boolean;
  /** Called with a message that is refused here. */
  onUnread(reason: string, session: SMTPServerSession): void;
  /** Frees the place of the client's network: after a login, or when the connection closes. */
  leave?: () => void;
}

/** Since the last message. */
const maxErrors = 20;
/**
 * Commands without effect, such as NOOP, RSET and refused ones, since the last message. Accepted recipients do not count, nor
 * does one command in each five seconds, with which a pool keeps its connection open.
 */
const maxIdleCommands = 100;
const idleCommandMs = 5000;

const withEnhanced = /^\d\.\d{1,3}\.\d{1,3} /;

/** RFC 2920 section 3.1, RFC 3207 section 4, RFC 4954 section 4. */
const endingGroup = /^(EHLO|HELO|STARTTLS|AUTH|DATA)\b/i;

const replies: Record<StreamViolation, [code: number, text: string]> = {
  'line-end': [521, '5.5.2 Bare CR or LF; a line must end with CRLF'],
  pipelining: [554, '5.5.0 Improper pipelining: input arrived before the reply to the previous command'],
  'line-length': [500, '5.5.2 Line too long'],
  flood: [552, '5.3.4 The message is far larger than the limit'],
};

const connections = new WeakMap<SMTPServerSession, SmtpConnection>();

export function connectionOf(session: SMTPServerSession): SmtpConnection {
  return connections.get(session)!;
}

export class SmtpConnection extends ClientSession {
  readonly #policy: ConnectionPolicy;
  #deadline: NodeJS.Timeout | undefined;
  /** Watches the rate of the message that is being received. */
  #transfer: ReturnType<MinimumRate['watch']> | undefined;
  #errors = 0;
  #idleCommands = 0;
  #lastCommandAt = performance.now();
  /** Transactions, by their envelope, with more recipients than the limit. */
  readonly #overfull = new WeakSet<object>();
  #isDismissed = false;
  readonly #ending = new AbortController();

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: SessionOptions | null | undefined,
    policy: ConnectionPolicy,
  ) {
    super(server, socket, options);
    this.#policy = policy;
    connections.set(this.session, this);
    this.useParser(
      () => this.#strictParser(),
      (error) => this.send(421, `4.3.0 ${error.message}`),
    );
    this.#setDeadline(policy.timeouts.stranger);
  }

  /** Aborted when the connection ends, or when the server stops. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  leaveNetwork(): void {
    this.#policy.leave?.();
  }

  #strictParser(): StrictStream {
    const { longestCommand: longestLine, largestMessage, takesBareLf } = this.#policy;
    return new StrictStream({
      longestLine,
      takesBareLf,
      // A client over the announced limit is read to the end of its message, to get a 552; at twice the limit it is cut off.
      largestMessage: () => 2 * largestMessage(),
      endsGroup: (line) => this.isInLogin || endingGroup.test(line),
      onViolation: (violation) => {
        this.#reportUnread(replies[violation][1]);
        this.#end(...replies[violation]);
      },
      onMessageBytes: (count) => this.#transfer?.received(count),
    });
  }

  protected override admitCommand(): boolean {
    clearTimeout(this.#deadline);
    const now = performance.now();
    const free = (now - this.#lastCommandAt) / idleCommandMs;
    this.#lastCommandAt = now;
    this.#idleCommands = Math.max(this.#idleCommands - free, 0) + 1;
    const isAdmitted = this.#idleCommands <= maxIdleCommands;
    if (!isAdmitted) this.send(421, '4.7.0 Too many commands without a message');
    return isAdmitted;
  }

  /**
   * Many programs report success if any recipient was accepted, so a submission with too many reaches nobody. A server that
   * returns mail sends the remaining recipients in another transaction (RFC 5321 section 4.5.3.1.10).
   */
  protected override admitMessage(): boolean {
    if (!this.session.user || !this.#overfull.has(this.session.envelope)) return true;
    const { maxRecipients } = this.#policy;
    const text = `5.5.3 Nothing was sent: a message may have ${maxRecipients} recipients. Send it in several parts.`;
    this.#reportUnread(text);
    this.send(552, text);
    return false;
  }

  protected override readPath(isSender: boolean, text: string): Path {
    return isSender ? readReversePath(text) : readPath(text);
  }

  protected override mayLogIn(): boolean {
    return this.#policy.mayLogIn(this.secure, this.remoteAddress);
  }

  protected override refuseLogin(): void {
    this.send(538, '5.7.11 UNAUTHORIZED: TLS is required to log in. Use STARTTLS first.');
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const isOurs = typeof data === 'string' && withEnhanced.test(data);
    this.#transfer?.stop();
    // RFC 5321 section 3.3: only a 354 is followed by a message.
    this.#transfer = code === 354 ? this.#policy.minimumRate.watch(() => this.#timeOut()) : undefined;
    super.send(code, data, isOurs ? false : context);
    if (code === 421) return;
    this.#count(code, context || '', isOurs);
    if (this.#errors >= maxErrors) this.send(421, '4.7.0 Too many errors');
    else if (this.#isDismissed && !this.isBusy) this.#sendShutdown();
    else this.#setDeadline(this.#timeoutAfter(code));
  }

  /** Refusals of an application's mail are no abuse: an hour's mail may all be to suppressed recipients. */
  #count(code: number, context: string, isRefusal: boolean): void {
    if (context === 'DATA_OK') {
      this.#idleCommands = 0;
      this.#errors = 0;
    }
    if (context === 'RCPT_TO_OK') this.#idleCommands -= 1;
    // The limits of requests bound an application's transactions.
    if (this.session.user && (context === 'MAIL_FROM_OK' || code === 354)) this.#idleCommands -= 1;
    if (context === 'TOO_MANY_RECIPIENTS') this.#overfull.add(this.session.envelope);
    if (code >= 500 && !(isRefusal && this.session.user)) this.#errors += 1;
  }

  /** Disconnects now, or after the command or message in progress; `atOnce` does not wait for an incomplete message. */
  dismiss(atOnce: boolean): void {
    this.#ending.abort();
    if (this.isDeciding || (!atOnce && this.isBusy)) this.#isDismissed = true;
    else this.#sendShutdown();
  }

  override close(): void {
    clearTimeout(this.#deadline);
    super.close();
  }

  protected override onClosed(): void {
    clearTimeout(this.#deadline);
    this.#ending.abort();
    this.#transfer?.stop();
    this.leaveNetwork();
  }

  #sendShutdown(): void {
    this.send(421, '4.3.2 The server is shutting down. Retry later.');
  }

  #reportUnread(text: string): void {
    this.#policy.onUnread(text.replace(withEnhanced, ''), this.session);
  }

  #end(code: number, text: string): void {
    this.send(code, text);
    this.close();
  }

  /** Until the client's next input after this reply. */
  #timeoutAfter(code: number): number {
    const { stranger, command, message } = this.#policy.timeouts;
    if (code === 354) return message;
    const isKnown = Boolean(this.session.user) || (this.session.envelope?.rcptTo.length ?? 0) > 0;
    return isKnown ? command : stranger;
  }

  #setDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#timeOut(), ms);
    this.#deadline.unref();
  }

  #timeOut(): void {
    if (!this.isEnding && !this.isDeciding) this.send(421, '4.4.2 Timeout: the client is too slow');
  }
}
