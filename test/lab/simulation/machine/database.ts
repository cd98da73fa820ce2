/**
 * The package sqlite3 on node:sqlite: the same SQLite, in files, but each statement runs when it is called and is answered
 * by an event a moment of virtual time later. So the order of statements and answers is a function of the seed. A process
 * that dies before the answer has committed and does not know.
 *
 * SQLite itself never waits for a lock here: this file repeats a statement that found the database locked, in virtual time,
 * until the connection's busy timeout. Faults of the disk (`Disk`) come before a statement runs, as SQLite reports them.
 */
import { createRequire } from 'node:module';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { Random } from '../random.ts';
import { type Machine, scheduler } from './scheduler.ts';

/** The disk of one machine. */
export interface Disk {
  /** How long a statement takes; `isCommit`: it syncs. */
  latencyMs(isCommit: boolean): number;
  /**
   * The error of a commit that fails, or of a statement that is a transaction of its own; null: it runs. Within a transaction
   * writes stay in memory (platform/database/engine/open.ts).
   */
  failure(): 'SQLITE_FULL' | 'SQLITE_IOERR' | null;
}

type Done = (this: unknown, error: Error | null, rows?: unknown[]) => void;
type Values = unknown[] | undefined;

const retryMs = 20;
const maxCompiled = 500;
const words: Record<string, string> = {
  SQLITE_FULL: 'database or disk is full',
  SQLITE_IOERR: 'disk I/O error',
  SQLITE_BUSY: 'database is locked',
};
/** By their numbers. */
const codes = (
  'OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN ' +
  'PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE'
).split(' ');

/** What the simulation counts and changes. */
export const databases = {
  diskOf: (_machine: Machine): Disk => sound(null),
  /** Whether the next two numbers count those of a machine. */
  isCounted: (_machine: Machine) => true,
  statements: 0,
  commits: 0,
  failures: 0,
  /** Called before each statement of a machine. */
  onStatement: null as ((machine: Machine) => void) | null,
  onCommit: null as (() => void) | null,
  /** The connections of a machine, to be closed when it dies. */
  open: new Map<Machine, Set<VirtualDatabase>>(),
};

export function sound(random: Random | null): Disk {
  return {
    latencyMs: (isCommit) => (isCommit ? 1.5 : 0.06) * (random ? random.between(0.5, 2) : 1),
    failure: () => null,
  };
}

function sqliteError(error: unknown): Error {
  const { errcode, message } = error as { errcode?: number; message: string };
  const name = errcode === undefined ? 'SQLITE_MISUSE' : `SQLITE_${codes[errcode & 255] ?? 'ERROR'}`;
  return failed(name, message);
}

function failed(code: string, message = words[code]): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code, errno: codes.indexOf(code.slice(7)) });
}

function bound(values: Values): SQLInputValue[] {
  return (values ?? []).map((value) => {
    if (value === undefined || value === null) return null;
    if (typeof value === 'boolean') return value ? 1n : 0n;
    // As the package sqlite3: integers of 32 bits are integers, all others doubles.
    if (typeof value === 'number')
      return Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? BigInt(value) : value;
    if (value instanceof Date) return value.getTime();
    return value as SQLInputValue;
  });
}

function plain(row: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name in row) {
    const value = row[name];
    copy[name] =
      value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
  }
  return copy;
}

const isWriting = (sql: string) => !/^\s*(select|pragma|begin|rollback|explain)/i.test(sql);

class VirtualStatement {
  readonly #database: VirtualDatabase;
  readonly sql: string;
  compiled: StatementSync | null;

  constructor(database: VirtualDatabase, sql: string, compiled: StatementSync | null) {
    this.#database = database;
    this.sql = sql;
    this.compiled = compiled;
  }

  all(values: Values, done: Done) {
    this.#database.perform(this.sql, () => this.compiled!.all(...bound(values)).map(plain), done);
  }

  run(values: Values, done: Done) {
    this.#database.perform(this.sql, () => this.compiled!.run(...bound(values)), done);
  }

  finalize() {
    this.compiled = null;
  }
}

export class VirtualDatabase {
  readonly #sqlite: DatabaseSync | null = null;
  readonly #machine = scheduler.current;
  #busyTimeoutMs = 1000;
  readonly #compiled = new Map<string, StatementSync>();
  #syncsCommits = true;
  #changes = 0;
  /** When the last statement is answered: a connection answers in order. */
  #answersAt = 0;

  constructor(file: string, ...more: unknown[]) {
    const done = more.find((one) => typeof one === 'function') as ((error: Error | null) => void) | undefined;
    const readOnly = more[0] === 1;
    let error: Error | null = null;
    try {
      this.#sqlite = new DatabaseSync(file, { readOnly, timeout: 0 });
      const own = databases.open.get(this.#machine) ?? new Set();
      databases.open.set(this.#machine, own.add(this));
    } catch (cause) {
      error = sqliteError(cause);
    }
    scheduler.after(0.1, () => done?.call(this, error));
  }

  /** Runs the statement now, or later while the database is locked, and answers later. */
  perform(sql: string, run: () => unknown, done?: Done, begunAt = scheduler.now): void {
    const isCounted = databases.isCounted(this.#machine);
    databases.statements += Number(isCounted);
    databases.onStatement?.(this.#machine);
    const sqlite = this.#sqlite!;
    const isWrite = isWriting(sql);
    const disk = databases.diskOf(this.#machine);
    const wasOpen = sqlite.isTransaction;
    let error: Error | null = null;
    let result: unknown;
    const injected = (wasOpen ? /^\s*commit/i.test(sql) : isWrite) ? disk.failure() : null;
    if (injected) {
      databases.failures += 1;
      error = failed(injected);
    } else
      try {
        result = run();
      } catch (cause) {
        error = sqliteError(cause);
        if (
          (error as NodeJS.ErrnoException).code === 'SQLITE_BUSY' &&
          scheduler.now - begunAt < this.#busyTimeoutMs
        )
          return void scheduler.after(retryMs, () => this.perform(sql, run, done, begunAt), this.#machine);
      }
    const isCommit = !error && !sqlite.isTransaction && (wasOpen || isWrite) && this.#hasChanged();
    if (isCommit) {
      databases.commits += Number(isCounted);
      databases.onCommit?.();
      scheduler.noteActivity();
    }
    this.#answersAt = Math.max(this.#answersAt, scheduler.now + disk.latencyMs(isCommit));
    const context = (result ?? {}) as { lastInsertRowid?: number; changes?: number };
    const statement = { lastID: context.lastInsertRowid, changes: context.changes };
    scheduler.after(
      this.#answersAt - scheduler.now,
      () => done?.call(statement, error, Array.isArray(result) ? result : []),
      this.#machine,
    );
  }

  /** Whether there is anything to sync since the last call. */
  #hasChanged(): boolean {
    const before = this.#changes;
    const counter = this.#compile('select total_changes() as count');
    this.#changes = (counter.get() as { count: number }).count;
    return this.#changes > before;
  }

  /** Kept, because compiling is most of the cost of a statement here. */
  #compile(sql: string): StatementSync {
    const kept = this.#compiled.get(sql);
    if (kept) return kept;
    if (this.#compiled.size >= maxCompiled) this.#compiled.clear();
    const compiled = this.#sqlite!.prepare(sql);
    this.#compiled.set(sql, compiled);
    return compiled;
  }

  prepare(sql: string, done?: (error: Error | null) => void) {
    try {
      const statement = new VirtualStatement(this, sql, this.#compile(sql));
      scheduler.after(0, () => done?.(null));
      return statement;
    } catch (error) {
      const cause = sqliteError(error);
      scheduler.after(0.1, () => done?.(cause));
      // As the package: a statement that does not compile never calls back.
      return { all() {}, run() {}, finalize() {} };
    }
  }

  all(sql: string, ...more: unknown[]): this {
    const [values, done] = splitValues(more);
    this.perform(
      sql,
      () =>
        this.#compile(sql)
          .all(...bound(values))
          .map(plain),
      done,
    );
    return this;
  }

  get(sql: string, ...more: unknown[]): this {
    const [values, done] = splitValues(more);
    return this.all(sql, values, function (this: unknown, error: Error | null, rows?: unknown[]) {
      done?.call(this, error, rows?.[0] as never);
    });
  }

  run(sql: string, ...more: unknown[]): this {
    const [values, done] = splitValues(more);
    this.perform(sql, () => this.#compile(sql).run(...bound(values)), done);
    return this;
  }

  exec(sql: string, done?: Done): this {
    const [, timeout] = /pragma busy_timeout = (\d+)/.exec(sql) ?? [];
    if (timeout) this.#busyTimeoutMs = Number(timeout);
    this.#syncsCommits &&= !/pragma synchronous = (?:normal|off)/.test(sql);
    const kept = sql.replace(/pragma busy_timeout = \d+;?/, '');
    this.perform(sql, () => this.#sqlite!.exec(kept), done);
    return this;
  }

  configure(option: string, value: number): void {
    if (option === 'busyTimeout') this.#busyTimeoutMs = value;
  }

  /** Whether a commit is on disk when it returns. */
  get syncsCommits(): boolean {
    return this.#syncsCommits;
  }

  /** An open transaction is rolled back, as when the process dies. */
  abandon(): void {
    if (this.#sqlite?.isOpen) this.#sqlite.close();
  }

  close(done?: (error: Error | null) => void): void {
    this.abandon();
    databases.open.get(this.#machine)?.delete(this);
    scheduler.after(0.1, () => done?.(null), this.#machine);
  }
}

function splitValues(more: unknown[]): [Values, Done | undefined] {
  const done = typeof more.at(-1) === 'function' ? (more.pop() as Done) : undefined;
  return [(Array.isArray(more[0]) ? more[0] : more) as unknown[], done];
}

/** Our source and knex take the class from the package when they open a database. */
export function replaceSqlite(): void {
  createRequire(import.meta.url)('sqlite3').Database = VirtualDatabase;
}
