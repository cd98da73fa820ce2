/**
 * A real PostgreSQL on the simulated network. A node's connection ends here, and has a real one of its own to PostgreSQL. A whole
 * request (up to its Sync or Query) goes there at once, and the virtual clock stands still until its ReadyForQuery, so PostgreSQL
 * takes no virtual time but what is drawn, and a run stays a function of its seed.
 *
 * Nothing may wait inside PostgreSQL, because the clock would stand still for ever. So a connection whose transaction is open has
 * the database to itself, and the requests of others wait here, in virtual time. What nodes do to each other inside of
 * transactions (SKIP LOCKED, deadlocks) is therefore not simulated.
 */
import net from 'node:net';
import type { Random } from '../random.ts';
import { databases } from './database.ts';
import type { Network, VirtualSocket } from './network.ts';
import { type Machine, newMachine, scheduler } from './scheduler.ts';

// The real one, before it is replaced.
const realConnect = net.connect;

const port = 5432;
/** PostgreSQL ends a transaction that is silent for so long. */
const maxSilenceMs = 10_000;
const typeOf = (name: string) => name.charCodeAt(0);
const [sync, query, parse, end] = [typeOf('S'), typeOf('Q'), typeOf('P'), typeOf('X')];
const [ready, notification] = [typeOf('Z'), typeOf('A')];

export class PostgresRelay {
  readonly machine = newMachine('postgresql');
  readonly realPort: number;
  /** Its transaction is open. */
  owner: Session | null = null;
  /** The sessions that listen for notifications. */
  readonly listening = new Set<Session>();
  readonly #random: Random;
  #waiting: (() => void)[] = [];

  constructor(network: Network, address: string, { realPort, random }: { realPort: number; random: Random }) {
    this.realPort = realPort;
    this.#random = random;
    network.attach(this.machine, address);
    const accept = (socket: VirtualSocket) =>
      void new Session(this, socket, network.machineAt(socket.remoteAddress));
    network.listen(this.machine, port, { accept, allowHalfOpen: false });
  }

  latencyMs(): number {
    return this.#random.between(0.2, 1.5);
  }

  /** Runs when no other session has a transaction open. */
  whenFree(session: Session, run: () => void): void {
    if (this.owner === null || this.owner === session) run();
    else this.#waiting.push(() => this.whenFree(session, run));
  }

  free(session: Session): void {
    if (this.owner !== session) return;
    this.owner = null;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) scheduler.after(0, run, this.machine);
  }
}

/** Splits bytes into messages; the first of a frontend has no type. */
class Messages {
  #bytes = Buffer.alloc(0);
  #hasType: boolean;

  constructor(hasType: boolean) {
    this.#hasType = hasType;
  }

  *add(bytes: Buffer): Generator<Buffer> {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (;;) {
      const start = Number(this.#hasType);
      if (this.#bytes.length < start + 4) return;
      const length = start + this.#bytes.readInt32BE(start);
      if (this.#bytes.length < length) return;
      const message = this.#bytes.subarray(0, length);
      this.#bytes = this.#bytes.subarray(length);
      this.#hasType = true;
      yield message;
    }
  }
}

class Session {
  readonly #relay: PostgresRelay;
  readonly #socket: VirtualSocket;
  readonly #client: Machine | undefined;
  readonly #fromNode = new Messages(false);
  readonly #fromServer = new Messages(true);
  #real: net.Socket | null = null;
  #request: Buffer[] = [];
  #requests: Buffer[] = [];
  /** What PostgreSQL has said of the request that is under way. */
  #answer: Buffer[] = [];
  /** Called at the next ReadyForQuery with its status, or when the real connection has ended. */
  #onReady: ((status: string | null) => void) | null = null;
  #isBusy = false;
  #count = 0;

  constructor(relay: PostgresRelay, socket: VirtualSocket, client: Machine | undefined) {
    this.#relay = relay;
    this.#client = client;
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('close', () => relay.whenFree(this, () => this.#close()));
  }

  #read(bytes: Buffer): void {
    for (const message of this.#fromNode.add(bytes)) {
      const isStart = this.#count === 0 && this.#request.length === 0 && this.#requests.length === 0;
      this.#request.push(isStart ? message : withVirtualTime(message));
      const isWhole = isStart || [sync, query, end].includes(message[0]!);
      if (!isWhole) continue;
      this.#requests.push(Buffer.concat(this.#request));
      this.#request = [];
    }
    this.#next();
  }

  #next(): void {
    if (this.#isBusy || this.#requests.length === 0) return;
    this.#isBusy = true;
    this.#relay.whenFree(this, () => {
      const request = this.#requests.shift();
      if (request && !this.#socket.destroyed) void this.#serve(request);
    });
  }

  async #serve(request: Buffer): Promise<void> {
    const relay = this.#relay;
    const release = scheduler.hold();
    this.#count += 1;
    if (this.#client) databases.onStatement?.(this.#client);
    const text = request.toString('latin1');
    const status = await this.#ask(request);
    if (/\blisten \w/.test(text)) relay.listening.add(this);
    if (status === null) relay.free(this);
    else if (status !== 'I') this.#own();
    else relay.free(this);
    this.#send(this.#answer);
    if (text.includes('pg_notify'))
      for (const one of relay.listening) if (one !== this) await one.#fetchNotifications();
    if (status === null) scheduler.after(relay.latencyMs(), () => this.#socket.destroy(), relay.machine);
    this.#isBusy = false;
    scheduler.after(0, () => this.#next(), relay.machine);
    release();
  }

  /** Null: the connection has ended. */
  async #ask(request: Buffer): Promise<string | null> {
    this.#answer = [];
    this.#real ??= this.#connect();
    const real = this.#real;
    return new Promise((resolve) => {
      if (real.destroyed) return resolve(null);
      this.#onReady = resolve;
      real.write(request);
    });
  }

  #connect(): net.Socket {
    const real = realConnect(this.#relay.realPort, '127.0.0.1');
    const finish = (status: string | null) => {
      const onReady = this.#onReady;
      this.#onReady = null;
      onReady?.(status);
    };
    real.on('error', () => {});
    real.on('close', () => finish(null));
    real.on('data', (bytes) => {
      for (const message of this.#fromServer.add(bytes)) {
        // Outside of a request it comes at any real time, and is fetched by the request that follows.
        this.#answer.push(message);
        if (message[0] === ready) finish(String.fromCharCode(message[5]!));
      }
    });
    return real;
  }

  /** It sends what it has for a session that listens before it is ready again. */
  async #fetchNotifications(): Promise<void> {
    if (this.#socket.destroyed) return;
    const early = this.#answer.filter((message) => message[0] === notification);
    await this.#ask(Buffer.from('Q\0\0\0\x06;\0', 'latin1'));
    const later = this.#answer.filter((message) => message[0] === notification);
    this.#send([...early, ...later]);
  }

  #send(messages: Buffer[]): void {
    const bytes = Buffer.concat(messages);
    this.#answer = [];
    if (bytes.length === 0) return;
    scheduler.after(
      this.#relay.latencyMs(),
      () => void (this.#socket.destroyed || this.#socket.write(bytes)),
      this.#relay.machine,
    );
  }

  /** Its transaction is open; a machine without power would keep it for ever. */
  #own(): void {
    this.#relay.owner = this;
    const count = this.#count;
    const check = () => {
      if (this.#relay.owner === this && this.#count === count) this.#socket.resetAndDestroy();
    };
    scheduler.after(maxSilenceMs, check, this.#relay.machine);
  }

  #close(): void {
    const real = this.#real;
    this.#relay.listening.delete(this);
    if (!real || real.destroyed) return void this.#relay.free(this);
    const release = scheduler.hold();
    // Its process has ended, and rolled back, before the connection is closed.
    real.once('close', () => {
      this.#relay.free(this);
      release();
    });
    real.end(Buffer.from('X\0\0\0\x04', 'latin1'));
  }
}

/** A statement that asks for PostgreSQL's time gets the virtual one. */
function withVirtualTime(message: Buffer): Buffer {
  if (message[0] !== parse && message[0] !== query) return message;
  const text = message.toString('latin1');
  if (!text.includes('clock_timestamp()')) return message;
  const changed = text.slice(5).replaceAll('clock_timestamp()', `to_timestamp(${scheduler.time / 1000})`);
  const bytes = Buffer.from(`${text.slice(0, 5)}${changed}`, 'latin1');
  bytes.writeInt32BE(bytes.length - 1, 1);
  return bytes;
}
