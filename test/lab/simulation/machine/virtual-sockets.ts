/** Makes node:net, node:http, node:https and node:tls use the simulated network (network.ts). */
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { type Network, VirtualSocket } from './network.ts';
import { type Machine, scheduler } from './scheduler.ts';

interface ConnectOptions {
  host?: string;
  port: number | string;
  timeout?: number;
  allowHalfOpen?: boolean;
  lookup?: net.LookupFunction;
}

type Found = { address: string } | { address: string }[];

function connectOn(network: Network, options: ConnectOptions, onConnect?: () => void): VirtualSocket {
  const socket = new VirtualSocket(network, options);
  socket.connecting = true;
  socket.pending = true;
  if (onConnect) socket.once('connect', onConnect);
  if (options.timeout) socket.setTimeout(options.timeout);
  const { host = '127.0.0.1', lookup } = options;
  const port = Number(options.port);
  if (net.isIP(host) || host === 'localhost') {
    network.connect(socket, host === 'localhost' ? '127.0.0.1' : host, port);
    return socket;
  }
  if (!lookup) throw new Error(`no lookup was given for ${host}`);
  lookup(host, { all: true }, (error, found: string | Found) => {
    if (socket.destroyed) return;
    if (error) return void socket.destroy(error);
    const [first] = Array.isArray(found) ? found : [found as { address: string }];
    network.connect(socket, first!.address, port);
  });
  return socket;
}

interface Listening {
  machine: Machine;
  port: number;
  connections: number;
}

/** node:net's Server keeps its state in a handle; this is ours. */
interface VirtualServer extends net.Server {
  _handle: object | null;
  allowHalfOpen: boolean;
}

function replaceServer(network: Network): void {
  const listening = new WeakMap<net.Server, Listening>();
  const endIfDrained = (server: VirtualServer) => {
    const state = listening.get(server);
    if (server._handle || !state || state.connections > 0) return;
    listening.delete(server);
    scheduler.after(0, () => server.emit('close'), state.machine);
  };
  const accept = (server: VirtualServer, state: Listening) => (socket: VirtualSocket) => {
    const { maxConnections } = server;
    if (maxConnections && state.connections >= maxConnections) {
      socket.resetAndDestroy();
      server.emit('drop', {});
      return;
    }
    state.connections += 1;
    socket.server = server;
    socket.once('close', () => {
      state.connections -= 1;
      endIfDrained(server);
    });
    server.emit('connection', socket);
  };
  Object.assign(net.Server.prototype, {
    listen(this: VirtualServer, ...values: unknown[]) {
      const [first] = values;
      const given = typeof first === 'object' ? (first as { port: number }).port : Number(first);
      const done = values.at(-1);
      if (typeof done === 'function') this.once('listening', done as () => void);
      const machine = scheduler.current;
      const state = { machine, port: given || network.freePort(), connections: 0 };
      const isFree = network.listen(machine, state.port, {
        accept: accept(this, state),
        allowHalfOpen: this.allowHalfOpen,
      });
      if (isFree) {
        listening.set(this, state);
        this._handle = {};
      }
      const error = Object.assign(new Error(`listen EADDRINUSE ${state.port}`), { code: 'EADDRINUSE' });
      scheduler.after(0, () => (isFree ? this.emit('listening') : this.emit('error', error)));
      return this;
    },
    address(this: VirtualServer) {
      const state = listening.get(this);
      return state ? { address: '0.0.0.0', port: state.port, family: 'IPv4' } : null;
    },
    close(this: VirtualServer, done?: (error?: Error) => void) {
      const state = listening.get(this);
      if (done) {
        if (this._handle) this.once('close', done);
        else
          this.once('close', () =>
            done(Object.assign(new Error('not running'), { code: 'ERR_SERVER_NOT_RUNNING' })),
          );
      }
      if (state) network.unlisten(state.machine, state.port);
      this._handle = null;
      endIfDrained(this);
      return this;
    },
    getConnections(this: VirtualServer, done: (error: null, count: number) => void) {
      done(null, listening.get(this)?.connections ?? 0);
    },
    ref(this: VirtualServer) {
      return this;
    },
    unref(this: VirtualServer) {
      return this;
    },
  });
}

export function replaceSockets(network: Network): void {
  const connect = (...values: unknown[]) => {
    const done = typeof values.at(-1) === 'function' ? (values.pop() as () => void) : undefined;
    const [first, host] = values;
    const options = (typeof first === 'object' ? first : { port: first, host }) as ConnectOptions;
    return connectOn(network, options, done);
  };
  class UnconnectedSocket extends VirtualSocket {
    constructor(options?: ConnectOptions) {
      super(network, options);
    }

    /** As pg connects. */
    connect(port: number, host: string): this {
      this.connecting = true;
      network.connect(this, host, port);
      return this;
    }
  }
  Object.assign(net, { connect, createConnection: connect, Socket: UnconnectedSocket });
  http.Agent.prototype.createConnection = connect as unknown as typeof http.Agent.prototype.createConnection;
  Object.assign(http.globalAgent, { createConnection: connect });
  // No simulated host serves HTTPS.
  https.Agent.prototype.createConnection = connect as unknown as typeof http.Agent.prototype.createConnection;
  replaceServer(network);
  syncBuiltinESMExports();
}
