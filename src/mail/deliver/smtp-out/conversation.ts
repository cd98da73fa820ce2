/**
 * The dialogue with a host over one socket: sends commands and reads replies, each with a deadline, and checks each reply
 * against its command. The order of the commands is decided by session.ts; what a reply or a loss means, by session-progress.ts.
 *
 * It is active during exchanges (the opening, then each mail) and idle between them. Silence, a lost connection, bytes
 * that are not SMTP, an unexpected reply or the stop of this server end it: the socket is destroyed and `readReply`
 * rejects with Broken, which has the result. Bytes from an idle host end it too. A reply's deadline is set once; slowly
 * arriving bytes do not extend it.
 */
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Phase, Reply } from '#platform/values/glossary.ts';
import { parseReply } from '#platform/values/reply.ts';
import { createDeadline, type Deadline, type SessionTimeouts } from './deadline.ts';
import { dotStuffed, endOfPiece, finalDot } from './dot-stuffing.ts';
import { createReplyReader } from './reply-reader.ts';
import { SessionProgress } from './session-progress.ts';
import { Broken } from './session-result.ts';
import type { Transcript } from './transcript.ts';

/** The phase that its reply belongs to, and the line. */
export type Command = readonly [Phase, string];

type Mode = 'idle' | 'active' | 'quitting' | 'closed';

/** From each mode, the modes that may follow. */
const transitions: Record<Mode, readonly Mode[]> = {
  idle: ['active', 'quitting', 'closed'],
  active: ['idle', 'closed'],
  quitting: ['closed'],
  closed: ['closed'],
};

const quitTimeoutMs = 1_000;
/** A host may take minutes to answer; keep-alive packets stop address translators from forgetting the connection. */
const keepAliveMs = 30_000;

export class Conversation {
  /** Resolves when the socket is gone. */
  readonly closed: Promise<void>;
  #mode: Mode = 'idle';
  readonly #progress = new SessionProgress();
  readonly #replies = createReplyReader();
  #lastReply = '';
  /** Null until it has ended. */
  #result: SessionResult | null = null;
  /** The call that waits for a reply, or for TLS. */
  #waiting: { resolve(reply: Reply): void; reject(error: Broken): void } | null = null;
  readonly #deadline: Deadline;
  readonly #plain: Socket;
  #socket: Socket;
  #transcript: Transcript | null = null;
  #stopped: AbortSignal | null = null;
  #endListener = () => {};
  #quitTimer: NodeJS.Timeout | undefined;

  /** `plain` is connected, and nothing has read from it. */
  constructor(plain: Socket, timeouts: SessionTimeouts) {
    this.#plain = plain;
    this.#socket = plain;
    this.#deadline = createDeadline(timeouts, (ms) =>
      this.#fail('timeout', `no answer within ${ms / 1000} s, waiting for ${this.#progress.phase}`),
    );
    plain.setNoDelay(true);
    plain.setKeepAlive(true, keepAliveMs);
    this.closed = new Promise((resolve) => {
      if (plain.closed) resolve();
      else plain.once('close', () => resolve());
    });
    this.#listenTo(plain);
  }

  /** The TLS socket, once there is TLS. */
  get socket(): Socket {
    return this.#socket;
  }

  /** Nothing is known that prevents another exchange. */
  get isAlive(): boolean {
    return this.#mode !== 'closed' && this.#replies.unread === 0 && this.#socket.writable;
  }

  /** A reply has come in this exchange. */
  get hasReply(): boolean {
    return this.#progress.hasReply;
  }

  /** The newest reply, unparsed. */
  get lastReply(): string {
    return this.#lastReply;
  }

  beginExchange(transcript: Transcript | null, stopped: AbortSignal | null): void {
    this.#transcript = transcript;
    this.#progress.beginExchange();
    if (this.#mode === 'closed' || this.#plain.destroyed) {
      this.#result = this.#progress.ended('the connection was closed');
      return;
    }
    this.#enter('active');
    this.#watchStop(stopped);
    if (stopped?.aborted) this.#onStop();
  }

  endExchange(): void {
    this.#deadline.clear();
    if (this.#mode === 'active') this.#enter('idle');
  }

  /** Calls `listener` when the host or the network ends the conversation while it is idle. */
  onEnd(listener: () => void): void {
    this.#endListener = listener;
  }

  /** Sends the commands in one write. */
  send(...commands: Command[]): void {
    for (const [phase, text] of commands) {
      this.#transcript?.add('client', text);
      this.#progress.sendCommand(phase);
    }
    if (this.#mode === 'active') this.#socket.write(commands.map(([, text]) => `${text}\r\n`).join(''));
  }

  sendMessage(message: Buffer): void {
    this.#progress.beginMessage();
    this.#sendFrom(message, 0, 0);
  }

  /** `sent`: the bytes that were sent before. Other connections have their turn between two pieces of a large message. */
  #sendFrom(message: Buffer, start: number, sent: number): void {
    const end = endOfPiece(message, start);
    const bytes = dotStuffed(message.subarray(start, end));
    if (end === message.length) {
      this.#sendLast(bytes, sent);
      return;
    }
    this.#socket.write(bytes);
    setImmediate(() => {
      if (this.#mode === 'active') this.#sendFrom(message, end, sent + bytes.length);
    });
  }

  #sendLast(bytes: Buffer, sent: number): void {
    const dot = finalDot(bytes);
    this.#socket.cork();
    this.#socket.write(bytes);
    this.#socket.write(dot, (error) => {
      if (error) return;
      this.#progress.endMessage();
      const whole = sent + bytes.length + dot.length;
      this.#transcript?.add('client', `<message, ${whole} bytes with its final dot>`);
      this.#deadline.extend();
    });
    this.#socket.uncork();
  }

  readReply(): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#result) return reject(new Broken(this.#result));
      this.#waiting = { resolve, reject };
      this.#takeReply();
      if (this.#waiting) this.#deadline.set(this.#progress.phase);
    });
  }

  startTls(options: ConnectionOptions): Promise<void> {
    // RFC 3207 section 4.2: everything received before TLS is discarded.
    const discarded = this.#replies.clear();
    const note = `discarded ${discarded} bytes that the host sent without TLS after its reply to STARTTLS`;
    if (discarded > 0) this.#transcript?.add('note', note);
    this.#plain.off('data', this.#onData).off('end', this.#onClose).off('close', this.#onClose);
    this.#progress.beginHandshake();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve: () => {}, reject };
      this.#deadline.set('tls');
      this.#socket = connectTls({ ...options, socket: this.#plain }, () => {
        this.#waiting = null;
        this.#progress.endHandshake();
        resolve();
      });
      this.#listenTo(this.#socket);
    });
  }

  /** When idle: sends QUIT and waits a second at most for the host to close. Resolves when the socket is gone. */
  quit(): Promise<void> {
    if (this.#mode === 'closed' || !this.#socket.writable) this.destroy();
    else if (this.#mode !== 'quitting') {
      this.#enter('quitting');
      this.#quitTimer = setTimeout(() => this.destroy(), quitTimeoutMs).unref();
      this.#socket.write('QUIT\r\n');
    }
    return this.closed;
  }

  destroy(): void {
    this.#enter('closed');
    this.#deadline.clear();
    clearTimeout(this.#quitTimer);
    this.#watchStop(null);
    // The TLS socket, if there is one, and the TCP socket below it.
    this.#socket.destroy();
    this.#plain.destroy();
  }

  #enter(mode: Mode): void {
    if (!transitions[this.#mode].includes(mode)) {
      throw new Error(`an SMTP conversation cannot go from ${this.#mode} to ${mode}`);
    }
    this.#mode = mode;
  }

  /** Gives the next whole reply to the call that waits for it, if both are there. */
  #takeReply(): void {
    const text = this.#waiting && this.#replies.next();
    if (text === null) return;
    this.#lastReply = text;
    this.#transcript?.add('server', text);
    const reply = parseReply(text);
    const problem = this.#progress.takeReply(text, reply, this.#replies.unread);
    if (problem) this.#fail('not-smtp', problem);
    else this.#resolve(reply!);
  }

  #resolve(reply: Reply): void {
    this.#waiting!.resolve(reply);
    this.#waiting = null;
    // RFC 5321 section 4.2.1: a host that says 421 closes. After a refusal before the end of the message, a command
    // would be read as part of the message.
    if (reply.code === 421 || this.#progress.isWriting) {
      this.#result = this.#progress.ended('the host has ended the conversation');
      this.destroy();
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.#replies.push(chunk)) this.#fail('not-smtp', 'the host sends too much without ending a reply');
    else if (this.#mode === 'active') this.#takeReply();
    else if (this.#mode === 'quitting') this.#socket.end();
    else if (this.#replies.unread > 0) this.#endOutsideExchange();
  };

  readonly #onError = (error: Error) => this.#onLost((rest) => this.#progress.socketFailed(error, rest));

  readonly #onClose = () => this.#onLost((rest) => this.#progress.lost('the connection was closed', rest));

  #listenTo(socket: Socket): void {
    socket.on('data', this.#onData).on('error', this.#onError);
    socket.on('end', this.#onClose).on('close', this.#onClose);
  }

  /** `resultOf` is given the reply that had begun. */
  #onLost(resultOf: (rest: string) => SessionResult): void {
    const rest = this.#replies.takeRest();
    if (rest !== '' && this.#mode === 'active') this.#transcript?.add('server', rest);
    this.#end(resultOf(rest));
  }

  #fail(...failure: Parameters<SessionProgress['failed']>): void {
    this.#end(this.#progress.failed(...failure));
  }

  /** Outside of an exchange, nothing asks for the result. */
  #end(result: SessionResult): void {
    if (this.#mode !== 'active') {
      this.#endOutsideExchange();
      return;
    }
    this.#result = result;
    if ('detail' in result) this.#transcript?.add('note', result.detail);
    this.#waiting?.reject(new Broken(result));
    this.#waiting = null;
    this.destroy();
  }

  #endOutsideExchange(): void {
    const wasIdle = this.#mode === 'idle';
    this.destroy();
    if (wasIdle) this.#endListener();
  }

  readonly #onStop = (): void => {
    if (this.#mode === 'active') this.#fail('interrupted', 'this server was stopped during the conversation');
  };

  /** A mail's signal is usually that of the mail before, so the listener often stays. */
  #watchStop(signal: AbortSignal | null): void {
    if (signal === this.#stopped) return;
    this.#stopped?.removeEventListener('abort', this.#onStop);
    signal?.addEventListener('abort', this.#onStop, { once: true });
    this.#stopped = signal;
  }
}
