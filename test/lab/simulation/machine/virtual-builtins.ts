/**
 * Replaces what Node gives a program from outside: time, timers, randomness, files by threads. Node's modules are changed in
 * place and their ESM names brought up to date (module.syncBuiltinESMExports), so our source and its dependencies run as they
 * are, and no part of the source needs an argument for it. It must run before either is imported.
 *
 * Files are read and written by the synchronous functions: these take no virtual time. Keys are made once, because they are
 * dear and no order depends on them. Sockets are in virtual-sockets.ts, DNS in names.ts.
 */
import crypto from 'node:crypto';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { promisify } from 'node:util';
import { Random } from '../random.ts';
import { type Scheduled, scheduler } from './scheduler.ts';

const realClear = { timeout: clearTimeout, immediate: clearImmediate };
const maxDelay = 2 ** 31 - 1;

/** A timer as Node's Timeout. */
class Timer {
  #scheduled: Scheduled | null = null;
  readonly #ms: number;
  readonly #repeats: boolean;
  readonly #run: () => void;

  constructor(ms: number, repeats: boolean, run: () => void) {
    this.#ms = ms >= 1 && ms <= maxDelay ? Math.trunc(ms) : 1;
    this.#repeats = repeats;
    this.#run = run;
    this.refresh();
  }

  refresh() {
    this.close();
    this.#scheduled = scheduler.after(this.#ms, () => {
      if (this.#repeats) this.refresh();
      this.#run();
    });
    return this;
  }

  close() {
    if (this.#scheduled) this.#scheduled.run = null;
    this.#scheduled = null;
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }

  hasRef() {
    return true;
  }

  [Symbol.dispose]() {
    this.close();
  }
}

class Immediate {
  readonly #scheduled: Scheduled;

  constructor(run: () => void) {
    this.#scheduled = scheduler.after(0, run);
  }

  close() {
    this.#scheduled.run = null;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }
}

type Action = (...values: unknown[]) => void;

function clear(timer: unknown): void {
  if (timer instanceof Timer || timer instanceof Immediate) timer.close();
  // Timers of Node itself, and those from before.
  else if (timer) realClear.timeout(timer as NodeJS.Timeout);
}

function waiting<Value>(
  signal: AbortSignal | undefined,
  begin: (done: () => void) => { close(): unknown },
  value: Value,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const reason = () =>
      Object.assign(new Error('The operation was aborted'), {
        name: 'AbortError',
        code: 'ABORT_ERR',
        cause: signal!.reason,
      });
    if (signal?.aborted) return reject(reason());
    const onAbort = () => {
      timer.close();
      reject(reason());
    };
    const timer = begin(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve(value);
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function replaceTimers(): void {
  const replaced = {
    setTimeout: (run: Action, ms = 1, ...values: unknown[]) => new Timer(ms, false, () => run(...values)),
    setInterval: (run: Action, ms = 1, ...values: unknown[]) => new Timer(ms, true, () => run(...values)),
    setImmediate: (run: Action, ...values: unknown[]) => new Immediate(() => run(...values)),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  const promised = {
    setTimeout: <Value>(ms = 1, value?: Value, options?: { signal?: AbortSignal }) =>
      waiting(options?.signal, (done) => new Timer(ms, false, done), value),
    setImmediate: <Value>(value?: Value, options?: { signal?: AbortSignal }) =>
      waiting(options?.signal, (done) => new Immediate(done), value),
  };
  for (const name of ['setTimeout', 'setImmediate'] as const)
    Object.defineProperty(replaced[name], promisify.custom, { value: promised[name] });
  Object.assign(globalThis, replaced);
  Object.assign(timers, replaced);
  Object.assign(timersPromises, promised);
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    new Timer(ms, false, () =>
      controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    );
    return controller.signal;
  };
}

function replaceClock(): void {
  const RealDate = Date;
  class VirtualDate extends RealDate {
    constructor(...values: unknown[]) {
      if (values.length === 0) super(scheduler.wallClock());
      else super(...(values as [number]));
    }

    static override now = scheduler.wallClock;

    static override [Symbol.hasInstance](value: unknown) {
      return Object.prototype.toString.call(value) === '[object Date]';
    }
  }
  globalThis.Date = VirtualDate as DateConstructor;
  performance.now = scheduler.monotonic;
}

/** Of the run. A library may have taken a function below for itself when it was loaded, in an earlier run. */
let numbers = new Random('none');
let bytes = new Random('none');
/** How often a buffer was filled. */
let fills = 0;

function replaceRandomness(): void {
  const randomBytes = (size: number) => {
    const filled = Buffer.alloc(size);
    bytes.fill(filled);
    return filled;
  };
  const randomFillSync = (buffer: NodeJS.ArrayBufferView) => {
    fills += 1;
    bytes.fill(new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength));
    return buffer;
  };
  Math.random = () => numbers.next();
  Object.assign(crypto, {
    randomBytes,
    randomFillSync,
    randomUUID: () => {
      const bytes = randomBytes(16);
      bytes[6] = (bytes[6]! & 0x0f) | 0x40;
      bytes[8] = (bytes[8]! & 0x3f) | 0x80;
      return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    },
    randomInt: (min: number, max?: number) =>
      max === undefined ? bytes.integer(0, min - 1) : bytes.integer(min, max - 1),
    generateKeyPair: (...values: unknown[]) => {
      const done = values.pop() as Action;
      const { publicKey, privateKey } = crypto.generateKeyPairSync(
        ...(values as ['rsa', { modulusLength: number }]),
      );
      scheduler.after(50, () => done(null, publicKey, privateKey));
    },
    generateKeyPairSync: keptPairs(),
    scrypt: (password: string, salt: Buffer, length: number, options: crypto.ScryptOptions, done: Action) => {
      const key = crypto.scryptSync(password, salt, length, options);
      scheduler.after(1, () => done(null, key));
    },
  });
  crypto.webcrypto.getRandomValues = randomFillSync as typeof crypto.webcrypto.getRandomValues;
}

function keptPairs(): typeof crypto.generateKeyPairSync {
  const real = crypto.generateKeyPairSync as (...values: unknown[]) => unknown;
  const made = new Map<string, unknown>();
  const generate = (...values: unknown[]) => {
    const kind = JSON.stringify(values);
    if (!made.has(kind)) made.set(kind, real(...values));
    return made.get(kind);
  };
  return generate as unknown as typeof crypto.generateKeyPairSync;
}

/** The functions of node:fs with a callback, and those of node:fs/promises. */
function replaceFiles(): void {
  const all = fs as unknown as Record<string, (...values: unknown[]) => unknown>;
  const promised = fs.promises as unknown as typeof all;
  for (const name of Object.keys(all)) {
    const synchronous = all[`${name}Sync`];
    if (!synchronous || name.endsWith('Sync') || name === 'exists') continue;
    const isTransfer = name === 'read' || name === 'write' || name === 'writev' || name === 'readv';
    all[name] = (...values) => {
      const done = values.pop() as Action;
      let answer: unknown[];
      try {
        const result = synchronous(...values);
        answer = isTransfer ? [null, result, values[1]] : [null, result];
      } catch (error) {
        answer = [error];
      }
      scheduler.after(0, () => done(...answer));
    };
    if (name in promised) promised[name] = async (...values) => synchronous(...values);
  }
  fs.promises.open = (async (path: string, flags: string, mode: number) =>
    new Handle(fs.openSync(path, flags, mode))) as never;
}

/** As much of node:fs/promises' FileHandle as the mail log needs. */
class Handle {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  async write(bytes: Buffer) {
    return { bytesWritten: fs.writeSync(this.#fd, bytes) };
  }

  async close() {
    fs.closeSync(this.#fd);
  }
}

export function replaceBuiltins(): void {
  replaceTimers();
  replaceClock();
  replaceFiles();
  replaceRandomness();
  syncBuiltinESMExports();
}

/** Makes random numbers a function of the seed. `newId` draws for many ids at a time: what an earlier run has left is used up. */
export function seedRandomness(seed: string, newId: () => string): void {
  const random = new Random(`${seed}/process`);
  numbers = random.stream('numbers');
  bytes = random.stream('bytes');
  const before = fills;
  while (fills === before) newId();
}
