/**
 * One client's conversation: smtp-server's, and what it leaves open. Replies carry the enhanced code that their text
 * begins with, or else the library's; AUTH is offered where it would be taken; a client that is slow, errs all the
 * time or talks without ever sending a mail is cut off; one that must go is told so (421) when nothing of its is
 * being decided.
 *
 * Its timeouts are a network's: they run on the real clock.
 */
import type { Socket } from 'node:net';
import type { SMTPServer } from 'smtp-server';
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import type { SMTPStream } from 'smtp-server/lib/smtp-stream.js';
import type { MinimumRate } from '../base/minimum-rate.ts';
import { type StreamFault, StrictStream } from './strict-stream.ts';

export interface ConnectionTimeouts {
  /** For the next command of a client of which nothing is known. */
  stranger: number;
  /** For the next command of one that has logged in or has a recipient (RFC 5321 section 4.5.3.2.7: five minutes). */
  command: number;
  /** For a whole message. */
  message: number;
}

export interface ConnectionPolicy {
  patience: ConnectionTimeouts;
  /** Octets of a command line, its CRLF included. */
  longestCommand: number;
  largestMessage: number;
  /** How fast a message has to come in at least. */
  minimumRate: MinimumRate;
  /** Whether this client may log in: over TLS, or where clear text is allowed. */
  mayLogIn(isSecure: boolean, address: string): boolean;
  /** Told when the connection is closed: STARTTLS takes all listeners off its socket. */
  leave?: () => void;
}

const maxErrors = 20;
/** Since the last message. One mail needs thirteen, the greeting and the login some more. */
const maxCommands = 100;

const withEnhanced = /^\d\.\d{1,3}\.\d{1,3} /;

/** RFC 2920 section 3.1, RFC 3207 section 4, RFC 4954 section 4. */
const endingGroup = /^(EHLO|HELO|STARTTLS|AUTH|DATA)\b/i;

const replies: Record<StreamFault, [code: number, text: string]> = {
  'line-end': [521, '5.5.2 A line must end with CR and LF, and neither may stand alone'],
  pipelining: [554, '5.5.0 Input before the reply to the command before it'],
  'line-length': [500, '5.5.2 The line is too long'],
  flood: [552, '5.3.4 The message is far larger than what is taken here'],
};

export class SmtpConnection extends SMTPConnection {
  readonly #manners: ConnectionPolicy;
  #deadline: NodeJS.Timeout | undefined;
  /** Of the message that comes in. */
  #transfer: ReturnType<MinimumRate['watch']> | undefined;
  #errors = 0;
  #commands = 0;
  #mustGo = false;

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: SMTPConnectionOptions | null | undefined,
    manners: ConnectionPolicy,
  ) {
    super(server, socket, options);
    this.#manners = manners;
    // The one that the constructor above has made knew no manners yet.
    this._parser = this.#strictParser();
    this.#await(manners.patience.stranger);
  }

  /** After STARTTLS there is a new one. */
  override _createParser(): SMTPStream {
    return #manners in this ? this.#strictParser() : super._createParser();
  }

  #strictParser(): StrictStream {
    const { longestCommand: longestLine, largestMessage } = this.#manners;
    const parser = new StrictStream({
      longestLine,
      // A client that was told the limit is read to the end of its message, to be told once more; but not for ever.
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
    if (this.#commands > maxCommands) this.send(421, '4.7.0 Too many commands without a mail');
    else super._onCommand(command, callback);
  }

  override handler_EHLO(command: Buffer, callback: () => void): void {
    const { disabledCommands } = this.session;
    // RFC 4954 section 4: not offered where it would not be taken.
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
    this.send(538, '5.7.11 UNAUTHORIZED: TLS is needed before a login; say STARTTLS first');
    callback();
  }

  #mayLogIn(): boolean {
    return this.#manners.mayLogIn(this.secure, this.remoteAddress);
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const isOurs = typeof data === 'string' && withEnhanced.test(data);
    this.#transfer?.stop();
    // RFC 5321 section 3.3: after 354, and only then, a message comes in.
    this.#transfer = code === 354 ? this.#manners.minimumRate.watch(() => this.#cutOff()) : undefined;
    super.send(code, data, isOurs ? false : context);
    if (code === 421) return;
    // A message was taken: who sends mail may say as much again.
    if (context === 'DATA_OK') this.#commands = 0;
    if (code >= 500) this.#errors += 1;
    if (this.#errors >= maxErrors) this.send(421, '4.7.0 Too many errors');
    else if (this.#mustGo && !this.#isBusy()) this.#sayGoodbye();
    else this.#await(this.#patience(code));
  }

  /** Goes at once, or when its message is decided; `atOnce`: a message that is not whole is not waited for. */
  dismiss(atOnce: boolean): void {
    if (this.#isDeciding() || (!atOnce && this.#isBusy())) this.#mustGo = true;
    else this.#sayGoodbye();
  }

  override close(): void {
    clearTimeout(this.#deadline);
    super.close();
  }

  override _onClose(): void {
    clearTimeout(this.#deadline);
    this.#transfer?.stop();
    this.#manners.leave?.();
    super._onClose();
  }

  #sayGoodbye(): void {
    this.send(421, '4.3.2 The service is stopping; try again shortly');
  }

  #end(code: number, text: string): void {
    this.send(code, text);
    this.close();
  }

  /** For what comes after this reply. */
  #patience(code: number): number {
    const { stranger, command, message } = this.#manners.patience;
    if (code === 354) return message;
    const isKnown = Boolean(this.session.user) || (this.session.envelope?.rcptTo.length ?? 0) > 0;
    return isKnown ? command : stranger;
  }

  #isBusy(): boolean {
    return this._handlerPending || Boolean(this._dataStream);
  }

  /** The client waits for us. */
  #isDeciding(): boolean {
    const isWhole = this._dataStream && this._parser && !this._parser._dataMode;
    return this._handlerPending || Boolean(isWhole);
  }

  #await(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#cutOff(), ms);
    this.#deadline.unref();
  }

  #cutOff(): void {
    if (!this._closing && !this._closed && !this.#isDeciding()) this.send(421, '4.4.2 You are too slow');
  }
}
