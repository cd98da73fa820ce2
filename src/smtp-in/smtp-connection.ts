/**
 * One SMTP session: smtp-server's, with stricter rules. A reply uses the enhanced code that its text begins with, or else
 * the library's. AUTH is offered only if it would be accepted. A client is disconnected if it is slow, makes many errors or
 * sends many commands without a mail. On a stop it gets 421, but only when no command of its is being decided.
 *
 * Timeouts run on the real clock, because they are network timeouts.
 */
import type { Socket } from 'node:net';
import type { SMTPServer } from 'smtp-server';
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import type { SMTPStream } from 'smtp-server/lib/smtp-stream.js';
import type { MinimumRate } from '../base/minimum-rate.ts';
import { type StreamFault, StrictStream } from './strict-stream.ts';

export interface ConnectionTimeouts {
  /** Until the next command of a client that has neither logged in nor named a recipient. */
  stranger: number;
  /** Until the next command of any other client (RFC 5321 section 4.5.3.2.7: five minutes). */
  command: number;
  /** For a whole message. */
  message: number;
}

export interface ConnectionPolicy {
  timeouts: ConnectionTimeouts;
  /** Octets of a command line, its CRLF included. */
  longestCommand: number;
  largestMessage: number;
  /** Minimum transfer rate of a message. */
  minimumRate: MinimumRate;
  /** Whether this client may log in: over TLS, or if clear text is allowed. */
  mayLogIn(isSecure: boolean, address: string): boolean;
  /** Called when the connection closes; a listener on the socket would not do, because STARTTLS removes all listeners. */
  leave?: () => void;
}

const maxErrors = 20;
/** Since the last message. One mail with ten recipients needs thirteen; the greeting and the login need a few more. */
const maxCommands = 100;

const withEnhanced = /^\d\.\d{1,3}\.\d{1,3} /;

/** RFC 2920 section 3.1, RFC 3207 section 4, RFC 4954 section 4. */
const endingGroup = /^(EHLO|HELO|STARTTLS|AUTH|DATA)\b/i;

const replies: Record<StreamFault, [code: number, text: string]> = {
  'line-end': [521, '5.5.2 Bare CR or LF; a line must end with CRLF'],
  pipelining: [554, '5.5.0 Improper pipelining: input arrived before the reply to the previous command'],
  'line-length': [500, '5.5.2 Line too long'],
  flood: [552, '5.3.4 The message is far larger than the limit'],
};

export class SmtpConnection extends SMTPConnection {
  readonly #policy: ConnectionPolicy;
  #deadline: NodeJS.Timeout | undefined;
  /** Of the message that comes in. */
  #transfer: ReturnType<MinimumRate['watch']> | undefined;
  #errors = 0;
  #commands = 0;
  #isDismissed = false;

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: SMTPConnectionOptions | null | undefined,
    policy: ConnectionPolicy,
  ) {
    super(server, socket, options);
    this.#policy = policy;
    // Replaces the parser that the base constructor created before `#policy` was set.
    this._parser = this.#strictParser();
    this.#setDeadline(policy.timeouts.stranger);
  }

  /** smtp-server creates a new parser after STARTTLS. */
  override _createParser(): SMTPStream {
    return #policy in this ? this.#strictParser() : super._createParser();
  }

  #strictParser(): StrictStream {
    const { longestCommand: longestLine, largestMessage } = this.#policy;
    const parser = new StrictStream({
      longestLine,
      // A client over the announced limit is read to the end of its message, to get a 552; at twice the limit it is cut off.
      largestMessage: 2 * largestMessage,
      endsGroup: (line) => this._nextHandler !== false || endingGroup.test(line),
      onFault: (fault) => this.#end(...replies[fault]),
      onMessageBytes: (count) => this.#transfer?.received(count),
    });
    parser.oncommand = (command, callback) => this._onCommand(command, callback);
    parser.on('error', (error) => this.send(421, `4.3.0 ${error.message}`));
    return parser;
  }

  override _onCommand(command: Buffer, callback?: () => void): void {
    clearTimeout(this.#deadline);
    this.#commands += 1;
    if (this.#commands > maxCommands) this.send(421, '4.7.0 Too many commands without a message');
    else super._onCommand(command, callback);
  }

  override handler_EHLO(command: Buffer, callback: () => void): void {
    const { disabledCommands } = this.session;
    // RFC 4954 section 4: AUTH is not offered if it would be refused.
    const hidden = this.#mayLogIn() ? [] : ['AUTH'];
    this.session.disabledCommands = [...this._server.options.disabledCommands, ...hidden];
    super.handler_EHLO(command, callback);
    this.session.disabledCommands = disabledCommands;
  }

  override handler_AUTH(command: Buffer, callback: () => void): void {
    if (this.#mayLogIn()) {
      super.handler_AUTH(command, callback);
      return;
    }
    this.send(538, '5.7.11 UNAUTHORIZED: TLS is required to log in. Use STARTTLS first.');
    callback();
  }

  #mayLogIn(): boolean {
    return this.#policy.mayLogIn(this.secure, this.remoteAddress);
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const isOurs = typeof data === 'string' && withEnhanced.test(data);
    this.#transfer?.stop();
    // RFC 5321 section 3.3: only a 354 is followed by a message.
    this.#transfer = code === 354 ? this.#policy.minimumRate.watch(() => this.#timeOut()) : undefined;
    super.send(code, data, isOurs ? false : context);
    if (code === 421) return;
    // A message was accepted: the count of commands starts again.
    if (context === 'DATA_OK') this.#commands = 0;
    if (code >= 500) this.#errors += 1;
    if (this.#errors >= maxErrors) this.send(421, '4.7.0 Too many errors');
    else if (this.#isDismissed && !this.#isBusy()) this.#sendShutdown();
    else this.#setDeadline(this.#timeoutAfter(code));
  }

  /** Disconnects now, or after the command or message in progress; `atOnce` does not wait for an incomplete message. */
  dismiss(atOnce: boolean): void {
    if (this.#isDeciding() || (!atOnce && this.#isBusy())) this.#isDismissed = true;
    else this.#sendShutdown();
  }

  override close(): void {
    clearTimeout(this.#deadline);
    super.close();
  }

  override _onClose(): void {
    clearTimeout(this.#deadline);
    this.#transfer?.stop();
    this.#policy.leave?.();
    super._onClose();
  }

  #sendShutdown(): void {
    this.send(421, '4.3.2 The server is shutting down. Retry later.');
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

  #isBusy(): boolean {
    return this._handlerPending || Boolean(this._dataStream);
  }

  /** The client waits for a reply. */
  #isDeciding(): boolean {
    const isWhole = this._dataStream && this._parser && !this._parser._dataMode;
    return this._handlerPending || Boolean(isWhole);
  }

  #setDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#timeOut(), ms);
    this.#deadline.unref();
  }

  #timeOut(): void {
    if (!this._closing && !this._closed && !this.#isDeciding())
      this.send(421, '4.4.2 Timeout: the client is too slow');
  }
}
