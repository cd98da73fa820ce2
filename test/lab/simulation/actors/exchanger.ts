/**
 * A mail host of recipients, as the faults want it to be. It speaks plain SMTP with PIPELINING. What it takes is in the book
 * before its 250 leaves, because a host has the mail even if its reply is lost.
 */
import type { Book } from '../book.ts';
import type { Network, VirtualSocket } from '../machine/network.ts';
import { type Machine, newMachine, scheduler } from '../machine/scheduler.ts';
import type { Random } from '../random.ts';
import { Returner } from './returner.ts';

export type HostMode =
  | 'sound'
  | 'greylists'
  | 'throttles'
  | 'tarpits'
  | 'hangs up before the reply'
  | 'hangs up after the dot'
  | 'is full'
  | 'refuses greetings'
  | 'says nothing'
  | 'refuses all recipients';

/** Recipients behave as the end of their local part says, at every host. */
const recipientReplies: [ending: string, reply: string][] = [
  ['-unknown', '550 5.1.1 User unknown'],
  ['-quota', '452 4.2.2 Mailbox full'],
];

const greylistMs = 5 * 60_000;
const perMinute = 6;

export class Exchanger {
  mode: HostMode = 'sound';
  readonly name: string;
  readonly machine: Machine;
  readonly #network: Network;
  readonly #book: Book;
  readonly #random: Random;
  readonly #firstSeen = new Map<string, number>();
  #taken: number[] = [];
  readonly #returner: Returner;
  connections = 0;
  /** Attempts that reached this host. */
  sessions = 0;
  /** Called when it has taken a mail, before its reply. */
  onTaken: (() => void) | null = null;

  constructor(
    network: Network,
    name: string,
    address: string,
    { book, random, returnsTo }: { book: Book; random: Random; returnsTo: string },
  ) {
    this.name = name;
    this.#network = network;
    this.#book = book;
    this.#random = random;
    this.machine = newMachine(name);
    const ofReturner = { network, book, random: random.stream('returned'), machine: this.machine };
    this.#returner = new Returner({ ...ofReturner, target: returnsTo });
    network.attach(this.machine, address);
    network.listen(this.machine, 25, { accept: (socket) => this.#serve(socket), allowHalfOpen: false });
  }

  #serve(socket: VirtualSocket): void {
    this.connections += 1;
    this.sessions += 1;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.connections -= 1;
    });
    if (this.mode === 'says nothing') return void socket.resume();
    new Conversation(this, socket, this.#network.machineAt(socket.remoteAddress)).begin();
  }

  /** Null: no reply, the host hangs up. */
  greeting(): string {
    if (this.mode === 'refuses greetings')
      return this.#random.pick(['421 4.3.2 Service not available', '554 No SMTP service here']);
    if (this.mode === 'throttles' && this.#isTooFast()) return '421 4.7.0 Too many connections, slow down';
    return `220 ${this.name} ESMTP`;
  }

  #isTooFast(): boolean {
    this.#taken = this.#taken.filter((at) => at > scheduler.time - 60_000);
    return this.#taken.length >= perMinute;
  }

  replyTo(recipient: string): string {
    const local = recipient.slice(0, recipient.indexOf('@'));
    for (const [ending, reply] of recipientReplies) if (local.endsWith(ending)) return reply;
    if (this.mode === 'refuses all recipients') return '550 5.7.1 Access denied';
    if (this.mode === 'is full') return '452 4.3.1 Insufficient system storage';
    if (this.mode === 'throttles' && this.#isTooFast())
      return '450 4.7.1 Rate limit exceeded, try again later';
    if (this.mode === 'greylists') {
      const first = this.#firstSeen.get(recipient) ?? scheduler.time;
      this.#firstSeen.set(recipient, first);
      if (scheduler.time < first + greylistMs) return '451 4.7.1 Greylisted, please try again in 5 minutes';
    }
    return '250 2.1.5 Ok';
  }

  delayMs(): number {
    return this.mode === 'tarpits' ? this.#random.between(5_000, 25_000) : this.#random.between(0.1, 2);
  }

  take(message: string, [returnPath, recipients]: [string, string[]], isDoubtful: boolean): void {
    const mail = Number(/^X-Mail: (\d+)/m.exec(message)?.[1] ?? -1);
    const messageId = /^Message-ID: (\S+)/im.exec(message)?.[1] ?? '';
    this.#taken.push(scheduler.time);
    for (const recipient of recipients) {
      this.#book.noteCopy({ mail, messageId, recipient, host: this.name, at: scheduler.time, isDoubtful });
      this.#returner.noteTaken({ mail, returnPath, messageId, recipient });
    }
    this.onTaken?.();
  }

  /** The function that is returned ends the offer. */
  noteOffer(recipient: string, client: Machine | undefined): () => void {
    return client ? this.#book.noteOffer(recipient, client) : () => {};
  }

  tellRefusal(recipient: string, reply: string): void {
    const mail = Number(/^(?:m|x)(\d+)/.exec(recipient)?.[1] ?? -2);
    this.#book.tell(mail, `${this.name} answers RCPT of ${recipient} with ${reply}`);
  }
}

class Conversation {
  readonly #host: Exchanger;
  readonly #socket: VirtualSocket;
  #input = '';
  #message: string | null = null;
  #returnPath = '';
  #recipients: string[] = [];
  readonly #client: Machine | undefined;
  #endOffers: (() => void)[] = [];
  #isBusy = false;

  constructor(host: Exchanger, socket: VirtualSocket, client: Machine | undefined) {
    this.#host = host;
    this.#socket = socket;
    this.#client = client;
    socket.on('close', () => this.#endTransaction());
  }

  #endTransaction(): void {
    for (const end of this.#endOffers.splice(0)) end();
  }

  begin(): void {
    this.#socket.on('data', (bytes: Buffer) => {
      this.#input += bytes.toString('latin1');
      this.#next();
    });
    this.#reply(this.#host.greeting());
  }

  #reply(text: string): void {
    this.#isBusy = true;
    scheduler.after(
      this.#host.delayMs(),
      () => {
        this.#isBusy = false;
        if (this.#socket.destroyed) return;
        this.#socket.write(`${text}\r\n`);
        if (text.startsWith('221') || text.startsWith('421')) this.#socket.end();
        else this.#next();
      },
      this.#host.machine,
    );
  }

  #next(): void {
    if (this.#isBusy || this.#socket.destroyed) return;
    if (this.#message !== null) return void this.#readMessage();
    const end = this.#input.indexOf('\r\n');
    if (end < 0) return;
    const line = this.#input.slice(0, end);
    this.#input = this.#input.slice(end + 2);
    this.#command(line);
  }

  #command(line: string): void {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === 'EHLO')
      return void this.#reply(
        `250-${this.#host.name}\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 50000000`,
      );
    if (verb === 'MAIL' || verb === 'RSET') {
      this.#endTransaction();
      this.#recipients = [];
      this.#returnPath = /<([^>]*)>/.exec(line)?.[1] ?? '';
      return void this.#reply('250 2.1.0 Ok');
    }
    if (verb === 'RCPT') return void this.#recipient(/<([^>]*)>/.exec(line)?.[1] ?? '');
    if (verb === 'DATA') {
      if (this.#recipients.length === 0) return void this.#reply('503 5.5.1 No recipients');
      this.#message = '';
      return void this.#reply('354 Go ahead');
    }
    if (verb === 'QUIT') return void this.#reply('221 2.0.0 Bye');
    this.#reply(verb === 'NOOP' ? '250 2.0.0 Ok' : '502 5.5.2 Not here');
  }

  #recipient(address: string): void {
    const reply = this.#host.replyTo(address);
    if (reply.startsWith('250')) {
      this.#recipients.push(address);
      this.#endOffers.push(this.#host.noteOffer(address, this.#client));
    } else this.#host.tellRefusal(address, reply);
    this.#reply(reply);
  }

  #readMessage(): void {
    const end = this.#input.indexOf('\r\n.\r\n');
    if (end < 0) return;
    const message = this.#input.slice(0, end);
    this.#input = this.#input.slice(end + 5);
    this.#message = null;
    if (this.#host.mode === 'hangs up before the reply') return void this.#socket.destroy();
    const isDoubtful = this.#host.mode === 'hangs up after the dot';
    this.#host.take(message, [this.#returnPath, this.#recipients], isDoubtful);
    this.#endTransaction();
    if (isDoubtful) return void this.#socket.destroy();
    this.#reply('250 2.0.0 Ok: queued');
  }
}
