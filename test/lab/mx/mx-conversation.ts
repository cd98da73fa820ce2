/**
 * One connection to the fake MX (mx.ts): its protocol, from the greeting to the end. Commands are answered one by
 * one in the order they came, however they were packed (RFC 2920), and each answer is the first of what the script,
 * the mailboxes concerned, and the protocol have to say.
 */
import { readFileSync } from 'node:fs';
import type net from 'node:net';
import tls from 'node:tls';
import {
  type Context,
  type MxMessage,
  type MxSession,
  mailbox,
  type Params,
  type Phase,
  type Reply,
  type Script,
  type TlsSide,
} from './mx-script.ts';

/** The certificate and key of the fake MX; a client that verifies takes it as `ca` and asks for mx.invalid. */
export const mxPem = readFileSync(new URL('../../fixtures/mx.pem', import.meta.url));

/** Bytes of TCP that fit a packet of the internet. */
const onePacket = 1400;

const crlf = Buffer.from('\r\n');

/** The extension (RFC 1870, 6152, 6531, 3461, 8689) that must have been offered for a parameter to be used. */
const extensionOf: Record<string, string> = {
  SIZE: 'SIZE',
  BODY: '8BITMIME',
  SMTPUTF8: 'SMTPUTF8',
  RET: 'DSN',
  ENVID: 'DSN',
  NOTIFY: 'DSN',
  ORCPT: 'DSN',
  REQUIRETLS: 'REQUIRETLS',
};

interface Setting {
  /** Read for every command: a test may change the script. */
  mx: { script: Script; messages: MxMessage[]; sessions: MxSession[] };
  hostname: string;
  tls: boolean | 'broken' | 'refused' | TlsSide;
  pem: Buffer;
  extensions: string[];
  /** How often each sender and each recipient has come, to this MX. */
  attempts: Map<string, number>;
}

export class Conversation {
  readonly session: MxSession;
  readonly #setting: Setting;
  readonly #plain: net.Socket;
  /** The same, or TLS upon it. */
  #socket: net.Socket;
  #received: Buffer = Buffer.alloc(0);
  #working = true;
  #mode: 'refusing' | 'commands' | 'data' | 'receiving' | 'deaf' = 'commands';
  /** What EHLO promised, keyword to value; undefined before any EHLO or HELO. */
  #offered: Map<string, string> | undefined;
  #message: MxMessage | undefined;
  /** Its content so far. */
  readonly #parts: Buffer[] = [];

  constructor(socket: net.Socket, setting: Setting) {
    const { sessions } = setting.mx;
    this.session = {
      id: sessions.length + 1,
      from: socket.remoteAddress ?? '',
      tls: false,
      commands: [],
      transcript: [],
      open: true,
    };
    sessions.push(this.session);
    this.#setting = setting;
    this.#plain = socket;
    this.#socket = socket;
    socket.on('close', () => {
      this.session.open = false;
    });
    this.#listen();
    this.#greet();
  }

  #listen(): void {
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      if (!this.#working) this.#work();
    });
  }

  async #greet(): Promise<void> {
    const connect = this.#setting.mx.script.connect?.(this.#context());
    if (connect === 'close') this.#socket.resetAndDestroy();
    else if (connect === 'hang') this.#mode = 'deaf';
    else {
      const reply = await this.#answer('greeting', `220 ${this.#setting.hostname} ESMTP`);
      // RFC 5321 section 3.1: after a 554 every command but QUIT is a 503.
      if (reply !== undefined && !reply.startsWith('2')) this.#mode = 'refusing';
    }
    await this.#work();
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (!this.#socket.destroyed && (await this.#step()));
    this.#working = false;
  }

  /** Deals with one command, or with message content; false when more must come first. */
  #step(): boolean | Promise<boolean> {
    if (this.#mode === 'deaf') return false;
    if (this.#mode === 'data' || this.#mode === 'receiving') return this.#content();
    const end = this.#received.indexOf('\n');
    if (end < 0) return false;
    const line = this.#received.toString('utf8', 0, end);
    this.#received = this.#received.subarray(end + 1);
    return this.#command(line).then(() => true);
  }

  async #command(line: string): Promise<void> {
    const command = line.replace(/\r$/, '');
    const verb = command.split(' ', 1)[0]!.toUpperCase();
    this.session.commands.push(command);
    this.session.transcript.push(`C: ${command}`);
    // RFC 5321 section 2.3.8: lines end in CRLF, and in nothing else.
    if (!line.endsWith('\r')) this.#send('500 5.5.2 bare LF');
    else if (this.#mode === 'refusing' && verb !== 'QUIT') this.#send('503 5.5.1 no service here');
    else await this.#dispatch(verb, command);
  }

  async #dispatch(verb: string, command: string): Promise<unknown> {
    switch (verb) {
      case 'EHLO':
      case 'HELO':
        return this.#hello(verb, command);
      case 'STARTTLS':
        return this.#startTls();
      case 'MAIL':
        return this.#mail(command);
      case 'RCPT':
        return this.#rcpt(command);
      case 'DATA':
        return this.#data(command);
      case 'RSET':
        this.#message = undefined;
        return this.#answer('rset', '250 2.0.0 ok', { command });
      case 'NOOP':
        return this.#send('250 2.0.0 ok');
      case 'QUIT':
        return (await this.#answer('quit', '221 2.0.0 bye', { command })) && this.#end();
      default:
        return this.#send('502 5.5.1 not implemented');
    }
  }

  async #hello(verb: string, command: string): Promise<void> {
    const { hostname, extensions } = this.#setting;
    const offers = this.#setting.tls && !this.session.tls ? [...extensions, 'STARTTLS'] : extensions;
    const lines = verb === 'EHLO' ? [hostname, ...offers] : [hostname];
    const fallback = lines.map((line) => `250 ${line}`);
    const reply = await this.#answer('ehlo', fallback, { command });
    this.#message = undefined;
    // What counts is what was said, for a script may have said something else.
    if (reply?.startsWith('2')) this.#offered = keywords(reply);
  }

  async #startTls(): Promise<void> {
    const { tls: how } = this.#setting;
    if (!this.#offered?.has('STARTTLS')) return void this.#send('502 5.5.1 not implemented');
    if (how === 'refused') return void this.#send('454 4.7.0 TLS not available');
    const reply = await this.#answer('starttls', '220 2.0.0 go ahead');
    if (!reply?.startsWith('220')) return;
    // RFC 3207 section 4.2: what was said in the clear is forgotten, commands sent ahead above all.
    this.#received = Buffer.alloc(0);
    this.#offered = undefined;
    this.#message = undefined;
    const { handshake, options = {} }: TlsSide =
      how === 'broken' ? { handshake: 'rubbish' } : typeof how === 'object' ? how : {};
    this.#plain.removeAllListeners('data');
    if (handshake === undefined) return this.#secure(options);
    this.#mode = 'deaf';
    if (handshake === 'hang') return void this.#plain.resume();
    if (handshake === 'reset') return void this.#plain.resetAndDestroy();
    if (handshake === 'close') return void this.#plain.end();
    this.#plain.once('data', (hello) => {
      if (handshake === 'rubbish') this.#plain.end('this is no TLS\r\n');
      else if (hello.length > onePacket) this.#plain.resetAndDestroy();
      else {
        this.#plain.pause();
        this.#plain.unshift(hello);
        this.#mode = 'commands';
        this.#secure(options);
      }
    });
  }

  #secure(options: tls.TLSSocketOptions): void {
    const { pem } = this.#setting;
    const secure = new tls.TLSSocket(this.#plain, { isServer: true, cert: pem, key: pem, ...options });
    secure.on('secure', () => {
      this.session.tls = true;
    });
    this.#socket = secure;
    this.#listen();
  }

  async #mail(command: string): Promise<void> {
    const path = parsePath(command, 'MAIL FROM:');
    if (!path) return void this.#send('501 5.5.4 syntax: MAIL FROM:<address>');
    if (!this.#offered) return void this.#send('503 5.5.1 EHLO first');
    if (this.#message) return void this.#send('503 5.5.1 one transaction at a time');
    const { address, params } = path;
    const message = newMessage(this.session, address, params);
    const context = { command, address, params, message, attempt: this.#count(`from ${address}`) };
    const reply = await this.#answer('mail', this.#objection(path, message) ?? '250 2.1.0 ok', context);
    if (reply?.startsWith('2')) this.#message = message;
  }

  async #rcpt(command: string): Promise<void> {
    const path = parsePath(command, 'RCPT TO:');
    if (!path) return void this.#send('501 5.5.4 syntax: RCPT TO:<address>');
    const message = this.#message;
    if (!message) return void this.#send('503 5.5.1 MAIL first');
    const { address, params } = path;
    const context = { command, address, params, message, attempt: this.#count(`to ${address}`) };
    const reply = await this.#answer('rcpt', this.#objection(path, message) ?? '250 2.1.5 ok', context);
    if (reply?.startsWith('2')) message.to.push(address);
  }

  /** What the protocol has against a MAIL or RCPT. */
  #objection({ address, params }: Path, message: MxMessage): string | undefined {
    const foreign = Object.keys(params).find((name) => !this.#offered?.has(extensionOf[name] ?? name));
    if (foreign) return `555 5.5.4 ${foreign} was not offered`;
    const limit = Number(this.#offered?.get('SIZE')) || Number.POSITIVE_INFINITY;
    if (Number(params.SIZE) > limit) return '552 5.3.4 message too big';
    // RFC 6531 section 3.5.
    if (/[^\x00-\x7f]/.test(address) && !message.params.SMTPUTF8) return '553 5.6.7 only with SMTPUTF8';
    return undefined;
  }

  async #data(command: string): Promise<void> {
    const message = this.#message;
    if (!message) return void this.#send('503 5.5.1 MAIL first');
    if (message.to.length === 0) return void this.#send('554 5.5.1 no valid recipients');
    const reply = await this.#answer('data', '354 go ahead', { command, ...this.#transaction(message) });
    if (!reply?.startsWith('3')) return;
    this.#mode = 'data';
    // The line end of DATA itself counts as the one before the first line, which may be the final dot already.
    this.#received = Buffer.concat([crlf, this.#received]);
  }

  /** Takes what has come of the message. RFC 5321 section 4.1.1.4: no line end but CRLF makes the final dot. */
  async #content(): Promise<boolean> {
    const message = this.#message!;
    if (this.#mode === 'data') {
      if (this.#received.length === crlf.length) return false;
      this.#mode = 'receiving';
      await this.#answer('receiving', undefined, this.#transaction(message));
      return true;
    }
    const end = this.#received.indexOf('\r\n.\r\n');
    // Without an end, the last four bytes may be the beginning of one.
    const length = end < 0 ? Math.max(this.#received.length - 4, 0) : end + 2;
    this.#parts.push(this.#received.subarray(0, length));
    this.#received = this.#received.subarray(length);
    if (end < 0) return false;
    this.#received = this.#received.subarray('.\r\n'.length);
    message.raw = unstuff(Buffer.concat(this.#parts.splice(0)));
    message.at = Date.now();
    await this.#taken(message);
    return true;
  }

  async #taken(message: MxMessage): Promise<void> {
    this.#mode = 'commands';
    this.#message = undefined;
    const fallback = `250 2.0.0 taken as ${this.#setting.mx.messages.length + 1}`;
    message.reply = (await this.#answer('dot', fallback, this.#transaction(message))) ?? null;
    if (!/^[45]/.test(message.reply ?? '')) this.#setting.mx.messages.push(message);
  }

  #transaction(message: MxMessage): Partial<Context> {
    return { message, attempt: this.#setting.attempts.get(`to ${message.to[0]?.toLowerCase()}`) };
  }

  #context(own: Partial<Context> = {}): Context {
    return { session: this.session, command: '', attempt: this.session.id, ...own };
  }

  #count(who: string): number {
    const { attempts } = this.#setting;
    const count = (attempts.get(who.toLowerCase()) ?? 0) + 1;
    attempts.set(who.toLowerCase(), count);
    return count;
  }

  /** Script, then the mailboxes concerned, then what is usual. Returns what was said, undefined if nothing. */
  async #answer(phase: Phase, fallback: Reply, own: Partial<Context> = {}): Promise<string | undefined> {
    const context = this.#context(own);
    const addresses = phase === 'rcpt' ? [context.address!] : (context.message?.to ?? []);
    for (const script of [this.#setting.mx.script, ...addresses.map(mailbox)]) {
      const reply = await script?.[phase]?.(context);
      if (reply !== undefined) return this.#send(reply);
    }
    return this.#send(fallback);
  }

  #send(reply: Reply): string | undefined {
    if (reply === undefined) return undefined;
    if (reply === 'close' || reply === 'reset' || reply === 'hang') {
      this.session.transcript.push(`S: (${reply})`);
      this.#mode = 'deaf';
      if (reply === 'close') this.#socket.destroy();
      if (reply === 'reset') this.#plain.resetAndDestroy();
      return undefined;
    }
    const text = typeof reply === 'object' && 'raw' in reply ? reply.raw : format(reply);
    for (const line of text.trimEnd().split('\r\n')) this.session.transcript.push(`S: ${line}`);
    if (this.#socket.writable) this.#socket.write(text);
    // RFC 5321 section 3.8: a 421 is followed by the end of the connection.
    if (text.startsWith('421')) this.#end();
    return text.trimEnd();
  }

  #end(): void {
    this.#mode = 'deaf';
    this.#socket.end();
  }
}

/** RFC 5321 section 4.2.1: a hyphen after the code in every line but the last. */
function format(reply: string | string[]): string {
  const lines = [reply].flat();
  const last = lines.length - 1;
  return lines.map((line, n) => `${line.slice(0, 3)}${n < last ? '-' : ' '}${line.slice(4)}\r\n`).join('');
}

/** The extensions in an EHLO reply, whose first line is only the name of the host. */
function keywords(reply: string): Map<string, string> {
  const lines = reply.split('\r\n').slice(1);
  return new Map(
    lines.map((line) => {
      const [keyword = '', value = ''] = line.slice(4).split(' ');
      return [keyword.toUpperCase(), value];
    }),
  );
}

function newMessage(session: MxSession, from: string, params: Params): MxMessage {
  return { from, to: [], params, raw: Buffer.alloc(0), tls: session.tls, at: 0, session, reply: null };
}

interface Path {
  address: string;
  params: Params;
}

/** `MAIL FROM:<"a b"@example.invalid> SIZE=12 SMTPUTF8` (RFC 5321 section 4.1.2). */
function parsePath(command: string, prefix: string): Path | undefined {
  if (!command.toUpperCase().startsWith(prefix)) return undefined;
  const match = /^<((?:"(?:\\.|[^"\\])*"|[^">])*)>(?: (.*))?$/.exec(command.slice(prefix.length));
  if (!match) return undefined;
  const params: Params = {};
  for (const param of (match[2] ?? '').split(' ').filter(Boolean)) {
    const [name = '', ...value] = param.split('=');
    params[name.toUpperCase()] = value.length > 0 ? value.join('=') : true;
  }
  return { address: match[1]!, params };
}

/**
 * RFC 5321 section 4.5.2: the first dot of a line is not part of it. The content has the CRLF of DATA before it.
 * latin1 keeps every byte as it is.
 */
function unstuff(content: Buffer): Buffer {
  const text = content.toString('latin1').replaceAll('\r\n.', '\r\n');
  return Buffer.from(text.slice(crlf.length), 'latin1');
}
