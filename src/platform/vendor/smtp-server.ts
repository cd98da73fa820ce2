/**
 * The parser, the session and the server of smtp-server, with names for the private parts that front/smtp/ needs. The public
 * interface has callbacks for commands only: it cannot check a client's bytes before they are parsed, read the addresses that
 * its own parser refuses, offer AUTH to some clients only, refuse DATA, end a session that is too slow, or count a connection
 * before its TLS handshake.
 * Read in smtp-server 3.21.6.
 */
import type { Socket } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js';

type ParsedPath = ReturnType<SMTPConnection['_parseAddressCommand']>;

export type Next = (error?: Error | null) => void;

/** The content in a chunk of a message. */
export interface MessageChunk {
  content: Buffer;
  /** Bytes of the chunk up to the end of the message. */
  used: number;
  isEnd: boolean;
}

export type { SMTPConnectionOptions as SessionOptions };

export abstract class CommandParser extends SMTPStream {
  /** The client's bytes. After a message, this is called again with the bytes that followed it in its chunk. */
  protected abstract receive(chunk: Buffer, done: Next): void;

  protected abstract contentOf(chunk: Buffer): MessageChunk;

  /** The message has ended. `hasMore`: its chunk goes on after it. */
  protected abstract onMessageEnd(hasMore: boolean): void;

  /** Parses the bytes. `done` is called when their commands are answered. */
  protected parse(bytes: Buffer, done: Next): void {
    super._write(bytes, 'buffer', done);
  }

  get isInMessage(): boolean {
    return this._dataMode;
  }

  /** The beginning of a line whose end has not been parsed yet. */
  protected get unfinishedLine(): string {
    return this._remainder;
  }

  override _write(chunk: Buffer, _: BufferEncoding | 'buffer', next: Next): void {
    if (this.isClosed || chunk.length === 0) next();
    else this.receive(chunk, next);
  }

  override _feedDataStream(chunk: Buffer, done: Next): void {
    const stream = this._dataStream!;
    const { content, used, isEnd } = this.contentOf(chunk);
    this._countDataBytes(content.length);
    if (isEnd) {
      this._endDataMode(content, chunk.subarray(used), done);
      return;
    }
    if (!stream.writable || stream.write(content) || stream.destroyed) {
      done();
      return;
    }
    // A stream that is destroyed never drains.
    const goOn = () => {
      stream.off('drain', goOn).off('close', goOn);
      done();
    };
    stream.on('drain', goOn).on('close', goOn);
  }

  override _endDataMode(chunk: Buffer | false, rest: Buffer, done: Next): void {
    this.onMessageEnd(rest.length > 0);
    super._endDataMode(chunk, rest, done);
  }

  /** smtp-server clears the callback after calling it, which would drop the callback of a second message; so clear it first. */
  override continue(): void {
    const goOn = this._continueCallback;
    if (typeof goOn !== 'function') {
      super.continue();
      return;
    }
    this._continueCallback = false;
    goOn();
  }
}

export abstract class ClientSession extends SMTPConnection {
  #newParser: (() => CommandParser) | undefined;

  /** Whether the client may log in. AUTH is offered only then (RFC 4954 section 4). */
  protected abstract mayLogIn(): boolean;
  /** Called for a login that `mayLogIn` forbids; sends the reply. */
  protected abstract refuseLogin(): void;
  /** Called before each command; false: it was answered already. */
  protected abstract admitCommand(): boolean;
  /** Called before DATA; false: it was refused, and the transaction is over. */
  protected abstract admitMessage(): boolean;
  /** The address in what follows the colon of MAIL FROM: or RCPT TO:, null if it is none; and the parameters behind it. */
  protected abstract readPath(
    isSender: boolean,
    text: string,
  ): { address: string | null; parameters: string };
  /** The socket is closed. A listener on it would not do, because STARTTLS removes all listeners. */
  protected abstract onClosed(): void;

  /** Replaces the parser now, and after STARTTLS. `onError` replies to an error of the parser. */
  protected useParser(create: () => CommandParser, onError: (error: Error) => void): void {
    this.#newParser = () => {
      const parser = create();
      parser.oncommand = (command, callback) => this._onCommand(command, callback);
      parser.on('error', onError);
      return parser;
    };
    this._parser = this.#newParser();
  }

  /** The client waits for a reply, or is sending a message. */
  protected get isBusy(): boolean {
    return this._handlerPending || Boolean(this._dataStream);
  }

  /** The client waits for a reply. */
  protected get isDeciding(): boolean {
    const isWholeMessage = this._dataStream && this._parser && !this._parser._dataMode;
    return this._handlerPending || Boolean(isWholeMessage);
  }

  /** The next line answers a challenge of AUTH and is not a command. */
  protected get isInLogin(): boolean {
    return this._nextHandler !== false;
  }

  protected get isEnding(): boolean {
    return this._closing || this._closed;
  }

  override _createParser(): SMTPStream {
    // The base constructor calls this before there is a `#newParser`.
    return (#newParser in this && this.#newParser?.()) || super._createParser();
  }

  override _onCommand(command: Buffer, callback?: () => void): void {
    if (this.admitCommand()) super._onCommand(command, callback);
  }

  override handler_EHLO(command: Buffer, callback: () => void): void {
    const { disabledCommands } = this.session;
    const hidden = this.mayLogIn() ? [] : ['AUTH'];
    this.session.disabledCommands = [...this._server.options.disabledCommands, ...hidden];
    super.handler_EHLO(command, callback);
    this.session.disabledCommands = disabledCommands;
  }

  override handler_AUTH(command: Buffer, callback: () => void): void {
    if (this.mayLogIn()) {
      super.handler_AUTH(command, callback);
      return;
    }
    this.refuseLogin();
    callback();
  }

  override handler_DATA(command: Buffer, callback: () => void): void {
    if (this.admitMessage()) {
      super.handler_DATA(command, callback);
      return;
    }
    this._resetSession();
    callback();
  }

  /** smtp-server checks the verb and reads the parameters, for an empty path. */
  override _parseAddressCommand(name: string, command: string | Buffer): ParsedPath {
    const text = command.toString();
    const colon = text.indexOf(':');
    const verb = text.slice(0, Math.max(colon, 0)).trim().replace(/\s+/, ' ');
    const { address, parameters } = this.readPath(name === 'mail from', text.slice(colon + 1));
    const parsed = super._parseAddressCommand(name, `${verb}:<> ${parameters}`);
    return parsed && address !== null && { ...parsed, address };
  }

  override _onClose(): void {
    this.onClosed();
    super._onClose();
  }
}

export abstract class SessionServer<Session extends ClientSession> extends SMTPServer {
  readonly #admitted = new WeakMap<Socket, Socket>();

  /** False: the connection has been refused. Called before the TLS handshake, which a client can delay. */
  protected abstract admit(socket: Socket, address: string): boolean;
  /** `admitted`: the socket that `admit` got; with implicit TLS the session gets another one. */
  protected abstract createSession(
    socket: Socket,
    options: SMTPConnectionOptions | null | undefined,
    admitted: Socket,
  ): Session;

  /** Whether the connections from this address begin with a PROXY header. */
  protected abstract isProxy(address: string): boolean;

  override _expectsProxyHeader(socket: Socket): boolean {
    return this.isProxy(socket.remoteAddress ?? '');
  }

  /** The largest message, as EHLO announces it; read for each command, so it may change. */
  protected get largest(): number {
    return this.options.size!;
  }

  protected set largest(bytes: number) {
    this.options.size = bytes;
  }

  protected get sessions(): Set<Session> {
    return this.connections as Set<Session>;
  }

  /** A client behind a proxy is admitted in `connect`, when its address is known. */
  override _acceptSocket(socket: Socket, handshake: boolean): (() => void) | false {
    if (!this._expectsProxyHeader(socket) && !this.admit(socket, socket.remoteAddress ?? '')) return false;
    return super._acceptSocket(socket, handshake);
  }

  override _upgrade(socket: Socket, callback: Parameters<SMTPServer['_upgrade']>[1]): void {
    super._upgrade(socket, (error, secure) => {
      if (secure) this.#admitted.set(secure, socket);
      callback(error, secure);
    });
  }

  override connect(socket: Socket, options?: SMTPConnectionOptions | null): void {
    if (options?.remoteAddress && !this.admit(socket, options.remoteAddress)) return;
    const session = this.createSession(socket, options, this.#admitted.get(socket) ?? socket);
    this.connections.add(session);
    session.on('error', (error) => this._onError(error));
    session.init();
  }
}
