/**
 * A process of Postern on a simulated machine: the real start (server/start.ts), and around it what main.ts and systemd do,
 * which restart it after the clock was set back, after a failed start and after a crash. It can be killed at any event.
 */
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { watchClock } from '#server/clock-jump.ts';
import { type Running, start } from '#server/start.ts';
import { databases } from './database.ts';
import type { Network } from './network.ts';
import { type Machine, newMachine, scheduler } from './scheduler.ts';

export interface PosternParts {
  network: Network;
  name: string;
  address: string;
  dataDir: string;
  settings: Record<string, string>;
  random: () => number;
  /** What operators read in the log of the service. */
  onLogged(level: string, text: string): void;
  /** Lines of the mail log. */
  onMailLog(lines: string): void;
  /** Before its files are closed. */
  onKill(hasPower: boolean): void;
}

/** Free bytes of the disk, as usual. */
export const muchSpace = 50 * 2 ** 30;
/** RestartSec of the unit. */
const restartMs = 2_000;

export class PosternProcess {
  machine: Machine | null = null;
  /** Null while it starts or is down. */
  running: Running | null = null;
  readonly config: Config;
  freeBytes = muchSpace;
  starts = 0;
  #clockAheadMs = 0;
  readonly #parts: PosternParts;

  constructor(parts: PosternParts) {
    this.#parts = parts;
    this.config = loadConfig({ POSTERN_DATA_DIR: parts.dataDir, ...parts.settings });
  }

  get isUp(): boolean {
    return this.running !== null;
  }

  get name(): string {
    return this.#parts.name;
  }

  get address(): string {
    return this.#parts.address;
  }

  /** How far its clock is ahead. */
  set clockAheadMs(ms: number) {
    this.#clockAheadMs = ms;
    if (this.machine) this.machine.clockAheadMs = ms;
  }

  get clockAheadMs(): number {
    return this.#clockAheadMs;
  }

  /** Nothing if it runs: systemd and an operator may both start it. */
  boot(): void {
    if (this.machine) return;
    const { network, name, address } = this.#parts;
    const machine = { name, isAlive: true, clockAheadMs: this.#clockAheadMs, isService: true };
    this.machine = machine;
    network.attach(machine, address);
    scheduler.after(0, () => void this.#run(machine), machine);
  }

  async #run(machine: Machine): Promise<void> {
    const log = this.#log();
    const launch = () => {
      this.starts += 1;
      return start(this.config, { log, random: this.#parts.random, freeBytes: async () => this.freeBytes });
    };
    const fail = (error: unknown) => {
      log.error({ err: error }, 'the process ends, because it cannot start');
      if (this.machine === machine) this.kill();
      scheduler.after(restartMs, () => this.boot(), bootLoader);
    };
    try {
      this.running = await launch();
    } catch (error) {
      return fail(error);
    }
    let last = Promise.resolve();
    // A sleep of the simulation is not a leap of the clock.
    const clock = { ...systemClock, now: () => Date.now() - scheduler.sleptMs };
    watchClock(clock, (byMs) => {
      last = last.then(async () => {
        if (byMs > 0) return this.running?.noteLeap(byMs);
        log.warn(`the clock was set back by ${-byMs} ms: restarting the service`);
        await this.running?.stop();
        this.running = null;
        this.running = await launch();
      });
      last.catch(fail);
    });
  }

  /** `hasPower` false: the machine loses power, and with it what was not synced to its disk. */
  kill(hasPower = true): void {
    const machine = this.machine;
    if (!machine) return;
    this.running = null;
    this.machine = null;
    this.#parts.network.kill(machine, hasPower);
    this.#parts.onKill(hasPower);
    const open = databases.open.get(machine);
    const loses = !hasPower && [...(open ?? [])].some((database) => !database.syncsCommits);
    if (loses) this.#loseUnsynced(() => abandonAll(open));
    else abandonAll(open);
  }

  /** With less than `synchronous = full`, only a checkpoint syncs: the database file is as of the last one. */
  #loseUnsynced(close: () => void): void {
    const file = join(this.#parts.dataDir, 'postern.sqlite');
    if (!existsSync(file)) return void close();
    copyFileSync(file, `${file}.synced`);
    close();
    copyFileSync(`${file}.synced`, file);
    for (const end of ['-wal', '-shm', '.synced']) rmSync(`${file}${end}`, { force: true });
  }

  /** As on SIGTERM; `stopped` is called by an event of nobody in particular. */
  stop(stopped: () => void): void {
    const { machine, running } = this;
    if (!machine || !running) return void stopped();
    this.running = null;
    scheduler.after(
      0,
      () =>
        void running.stop().then(() =>
          scheduler.after(
            0,
            () => {
              this.kill();
              stopped();
            },
            bootLoader,
          ),
        ),
      machine,
    );
  }

  #log(): Log {
    const { onLogged, onMailLog } = this.#parts;
    const at =
      (level: string) =>
      (...values: unknown[]) => {
        const [first, second] = values;
        const error = (first as { err?: Error } | null)?.err;
        onLogged(level, typeof first === 'string' ? first : `${second}${error ? `: ${textOf(error)}` : ''}`);
      };
    return {
      level: 'info',
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      fatal: at('error'),
      debug() {},
      trace() {},
      isLevelEnabled: () => true,
      writeLines: onMailLog,
    } as unknown as Log;
  }
}

const bootLoader = newMachine('boot loader');

function textOf(error: Error): string {
  return error.cause ? `${error.message} (${textOf(error.cause as Error)})` : String(error.message ?? error);
}

/** As when their process dies. */
export function abandonAll(open: Set<{ abandon(): void }> | undefined): void {
  for (const one of open ?? []) one.abandon();
  open?.clear();
}
