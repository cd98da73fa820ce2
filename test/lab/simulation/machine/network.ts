/**
 * The network between simulated machines: addresses, ports, links with latency, and TCP connections as pairs of duplex
 * streams. It behaves as TCP does for a program: bytes arrive in order or not at all, in pieces of any size; an end is a FIN,
 * a process that dies resets its connections, a machine without power answers nothing (its peers keep half-open ends).
 *
 * A link can be made slow, cut, or silent; the faults decide. Bytes that are lost are late bytes for TCP, so loss is latency,
 * and, on a silent link, silence.
 */
import { Duplex } from 'node:stream';
import { type Machine, type Scheduled, scheduler } from './scheduler.ts';

/** How the way from one machine to another behaves, asked for each connection and each piece. */
export interface Link {
  latencyMs(): number;
  /** What happens to an attempt to connect. */
  connecting(): 'open' | 'refused' | 'silent' | 'unreachable';
  /** Bytes after which a new connection is cut; null: never. */
  cutAfter(): number | null;
  /** Whether a piece arrives; if not, nothing ever arrives on this connection again. */
  isSilent(): boolean;
  /** The most bytes that arrive in one piece. */
  maxPiece(): number;
}

export interface Listener {
  accept(socket: VirtualSocket): void;
  allowHalfOpen: boolean;
}

/** Bytes that a sender may have under way before it has to wait, as the buffers of two kernels. */
const windowBytes = 128 * 1024;

export class Network {
  readonly #machines = new Map<string, Machine>();
  readonly #addresses = new Map<Machine, string>();
  readonly #listeners = new Map<Machine, Map<number, Listener>>();
  readonly #sockets = new Map<Machine, Set<VirtualSocket>>();
  linkBetween: (from: string, to: string, port: number) => Link = () => {
    throw new Error('the network has no links');
  };
  #ports = 32_768;

  /** A new process on the address; the earlier one must be dead. */
  attach(machine: Machine, address: string): void {
    this.#machines.set(address, machine);
    this.#addresses.set(machine, address);
    this.#listeners.set(machine, new Map());
    this.#sockets.set(machine, new Set());
  }

  /** `hasPower`: its kernel still answers, so connections are reset. */
  kill(machine: Machine, hasPower: boolean): void {
    machine.isAlive = false;
    const address = this.#addresses.get(machine)!;
    if (this.#machines.get(address) === machine) this.#machines.delete(address);
    for (const socket of this.#sockets.get(machine) ?? []) socket.loseProcess(hasPower);
    this.#sockets.delete(machine);
    this.#listeners.delete(machine);
  }

  machineAt(address: string): Machine | undefined {
    return this.#machines.get(address);
  }

  addressOf(machine: Machine): string {
    return this.#addresses.get(machine) ?? '127.0.0.1';
  }

  /** False: the port is in use. */
  listen(machine: Machine, port: number, listener: Listener): boolean {
    const ports = this.#listeners.get(machine)!;
    if (ports.has(port)) return false;
    ports.set(port, listener);
    return true;
  }

  unlisten(machine: Machine, port: number): void {
    this.#listeners.get(machine)?.delete(port);
  }

  freePort(): number {
    return ++this.#ports;
  }

  connect(socket: VirtualSocket, address: string, port: number): void {
    const from = scheduler.current;
    scheduler.noteActivity();
    const isLocal = address.startsWith('127.') || address === '::1';
    const target = isLocal ? this.addressOf(from) : address;
    const link = this.linkBetween(this.addressOf(from), target, port);
    const fate = link.connecting();
    const roundTrip = link.latencyMs() * 2;
    socket.local = { address: isLocal ? '127.0.0.1' : this.addressOf(from), port: this.freePort() };
    socket.remote = { address, port };
    if (fate === 'silent') return;
    const fail = (code: string) => scheduler.after(roundTrip, () => socket.connectionFails(code));
    const machine = this.#machines.get(target);
    if (fate === 'unreachable') return void fail('EHOSTUNREACH');
    if (!machine || fate === 'refused') return void fail('ECONNREFUSED');
    const arrive = () => {
      const listener = this.#listeners.get(machine)?.get(port);
      if (!listener) return void scheduler.after(0, () => socket.connectionFails('ECONNREFUSED'), from);
      const peer = new VirtualSocket(this, { allowHalfOpen: listener.allowHalfOpen });
      peer.local = socket.remote;
      peer.remote = socket.local;
      peer.join(socket, link);
      scheduler.after(
        roundTrip / 2,
        () => {
          if (!socket.destroyed) socket.connected();
        },
        from,
      );
      socket.join(peer, link);
      listener.accept(peer);
    };
    scheduler.after(roundTrip / 2, arrive, machine);
  }

  add(socket: VirtualSocket): void {
    this.#sockets.get(socket.machine)?.add(socket);
  }

  remove(socket: VirtualSocket): void {
    this.#sockets.get(socket.machine)?.delete(socket);
  }
}

interface Endpoint {
  address: string;
  port: number;
}

/** What node:net calls a Socket. */
export class VirtualSocket extends Duplex {
  readonly machine = scheduler.current;
  local: Endpoint = { address: '', port: 0 };
  remote: Endpoint = { address: '', port: 0 };
  connecting = false;
  pending = false;
  bytesRead = 0;
  bytesWritten = 0;
  timeout = 0;
  server: unknown = null;
  readonly #network: Network;
  #peer: VirtualSocket | null = null;
  #link: Link | null = null;
  /** When the last piece that was sent arrives. */
  #arrivesAt = 0;
  #underWay = 0;
  #onRoom: (() => void) | null = null;
  #cutAfter: number | null = null;
  #isSilent = false;
  #hasSentFin = false;
  #activeAt = 0;
  #idleTimer: Scheduled | null = null;

  constructor(network: Network, { allowHalfOpen = false }: { allowHalfOpen?: boolean | undefined } = {}) {
    super({ allowHalfOpen, autoDestroy: true });
    this.#network = network;
    network.add(this);
  }

  join(peer: VirtualSocket, link: Link): this {
    this.#peer = peer;
    this.#link = link;
    this.#cutAfter = link.cutAfter();
    return this;
  }

  connected(): void {
    this.connecting = false;
    this.pending = false;
    this.emit('connect');
    this.emit('ready');
  }

  connectionFails(code: string): void {
    const { address, port } = this.remote;
    this.destroy(
      Object.assign(new Error(`connect ${code} ${address}:${port}`), {
        code,
        syscall: 'connect',
        address,
        port,
      }),
    );
  }

  get remoteAddress() {
    return this.remote.address;
  }

  get remotePort() {
    return this.remote.port;
  }

  get remoteFamily() {
    return 'IPv4';
  }

  get localAddress() {
    return this.local.address;
  }

  get localPort() {
    return this.local.port;
  }

  address() {
    return { ...this.local, family: 'IPv4' };
  }

  get readyState() {
    return this.connecting ? 'opening' : 'open';
  }

  setNoDelay() {
    return this;
  }

  setKeepAlive() {
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  resetAndDestroy(): this {
    return this.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    this.timeout = ms;
    if (this.#idleTimer) this.#idleTimer.run = null;
    this.#idleTimer = null;
    if (onTimeout) ms > 0 ? this.once('timeout', onTimeout) : this.removeListener('timeout', onTimeout);
    this.#activeAt = scheduler.now;
    if (ms > 0) this.#waitForIdle(ms);
    return this;
  }

  #waitForIdle(ms: number): void {
    this.#idleTimer = scheduler.after(
      ms,
      () => {
        const left = this.#activeAt + this.timeout - scheduler.now;
        if (left > 0) return this.#waitForIdle(left);
        this.#idleTimer = null;
        this.emit('timeout');
      },
      this.machine,
    );
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.connecting) return void this.once('connect', () => this._write(chunk, _encoding, done));
    this.#activeAt = scheduler.now;
    const peer = this.#peer;
    if (!peer) return void done(broken('EPIPE'));
    this.bytesWritten += chunk.length;
    this.#underWay += chunk.length;
    this.#send(chunk);
    if (this.#underWay < windowBytes) done();
    else this.#onRoom = done;
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), '', done);
  }

  #send(written: Buffer): void {
    const link = this.#link!;
    let bytes = written;
    if (this.#cutAfter !== null && this.bytesWritten > this.#cutAfter) {
      bytes = bytes.subarray(0, Math.max(0, this.#cutAfter - (this.bytesWritten - bytes.length)));
      this.#deliver(bytes);
      this.#afterLatency(() => this.#peer!.receiveReset(), this.#peer!.machine);
      this.#afterLatency(() => this.receiveReset(), this.machine);
      this.#isSilent = true;
      return;
    }
    const max = link.maxPiece();
    for (let at = 0; at < bytes.length; at += max) this.#deliver(bytes.subarray(at, at + max));
  }

  #deliver(piece: Buffer): void {
    if (this.#isSilent || this.#link!.isSilent()) {
      this.#isSilent = true;
      return;
    }
    if (piece.length === 0) return;
    // The stream may write into its buffer again.
    const copy = Buffer.from(piece);
    this.#afterLatency(() => this.#peer!.receive(copy), this.#peer!.machine);
  }

  /** In the order of the calls. */
  #afterLatency(run: () => void, machine: Machine): void {
    this.#arrivesAt = Math.max(this.#arrivesAt, scheduler.now + this.#link!.latencyMs());
    scheduler.noteActivity();
    scheduler.after(this.#arrivesAt - scheduler.now, run, machine);
  }

  receive(piece: Buffer): void {
    const sender = this.#peer!;
    if (this.destroyed) {
      this.#afterLatency(() => sender.receiveReset(), sender.machine);
      return;
    }
    this.#activeAt = scheduler.now;
    this.bytesRead += piece.length;
    // The sender's kernel gets its acknowledgement; this program need not have read anything but a window.
    sender.acknowledge(piece.length);
    this.push(piece);
  }

  acknowledge(length: number): void {
    this.#underWay -= length;
    const onRoom = this.#onRoom;
    if (!onRoom || this.#underWay >= windowBytes) return;
    this.#onRoom = null;
    scheduler.after(0, onRoom, this.machine);
  }

  receiveFin(): void {
    if (!this.destroyed) this.push(null);
  }

  receiveReset(): void {
    if (!this.destroyed) this.destroy(broken('ECONNRESET'));
  }

  /** Its process is gone. */
  loseProcess(hasPower: boolean): void {
    const peer = this.#peer;
    if (hasPower && peer && !this.#isSilent && !this.destroyed)
      this.#afterLatency(() => peer.receiveReset(), peer.machine);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.connecting) return void this.once('connect', () => this._final(done));
    this.#sendFin();
    done();
  }

  #sendFin(): void {
    const peer = this.#peer;
    if (!peer || this.#hasSentFin || this.#isSilent) return;
    this.#hasSentFin = true;
    if (this.#link!.isSilent()) this.#isSilent = true;
    else this.#afterLatency(() => peer.receiveFin(), peer.machine);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#idleTimer) this.#idleTimer.run = null;
    this.#network.remove(this);
    this.#sendFin();
    done(error);
  }
}

function broken(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code === 'EPIPE' ? 'write EPIPE' : `read ${code}`), {
    code,
    syscall: code === 'EPIPE' ? 'write' : 'read',
  });
}
