/** Everything of one run: the service, the actors around it, and the book. Builds it, in the order in which it starts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readStatus, type Status } from '#operate/status/read-status.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { Book } from './book.ts';
import { Caller } from './caller.ts';
import { type Disk, databases, sound } from './database.ts';
import { Endpoint } from './endpoint.ts';
import { Exchanger } from './exchanger.ts';
import { Rows } from './invariants/rows.ts';
import { Links } from './links.ts';
import type { Names } from './names.ts';
import type { Network } from './network.ts';
import { PosternProcess } from './postern-process.ts';
import type { Random } from './random.ts';
import { type Machine, scheduler } from './scheduler.ts';
import { insertTenant, type Tenant } from './tenants.ts';

interface DiskFault extends Partial<Pick<Disk, 'failure'>> {
  extraMs?: (isCommit: boolean) => number;
}

export interface Domain {
  name: string;
  hosts: Exchanger[];
  addresses: string[];
}

/** The longest sleep of the service while nothing happens. With a longer one it would log that the clock has leapt. */
const sleepMs = { beforeClosedDoors: 10_000, atRest: 55_000 };
const apiPort = 80;
const posternAddress = '6.0.0.1';
const tenantCount = 3;
const domainCount = 5;

/** Small limits make mail wait for its turn. */
const limits = [
  { POSTERN_MTA_CONCURRENCY: '500', POSTERN_MTA_PER_DESTINATION: '20' },
  { POSTERN_MTA_CONCURRENCY: '4', POSTERN_MTA_PER_DESTINATION: '20' },
  { POSTERN_MTA_CONCURRENCY: '100', POSTERN_MTA_PER_DESTINATION: '2' },
];

const settings = {
  POSTERN_HOSTNAME: 'post.example',
  POSTERN_HTTP_HOST: posternAddress,
  POSTERN_HTTP_PORT: String(apiPort),
  POSTERN_INBOUND_PORT: '25',
  POSTERN_BACKUPS: 'off',
  POSTERN_IDEMPOTENCY_KEEP: '1h',
  POSTERN_MTA_MAX_AGE: '2h',
};

export class Scene {
  readonly random: Random;
  readonly network: Network;
  readonly names: Names;
  readonly links: Links;
  readonly book = new Book();
  readonly directory = mkdtempSync(join(directoryOf(), 'postern-simulation-'));
  readonly postern: PosternProcess;
  readonly domains: Domain[] = [];
  readonly endpoints: Endpoint[] = [];
  readonly callers: Caller[] = [];
  readonly tenants: Tenant[] = [];
  /** Where the commands of the command line run. */
  readonly operator: Machine = { name: 'operator', isAlive: true, clockAheadMs: 0, isService: true };
  /** The operator's connection. */
  db!: Db;
  readonly diskFaults = new Set<DiskFault>();
  wasClockMoved = false;
  #rows: Rows | null = null;
  /** What the service itself logged as an error. */
  readonly errors: { at: number; text: string }[] = [];

  constructor(random: Random, network: Network, names: Names) {
    this.random = random;
    this.network = network;
    this.names = names;
    this.links = new Links(random.stream('links'));
    network.linkBetween = this.links.between;
    databases.statements = databases.commits = 0;
    const usual = sound(random.stream('disk'));
    const failing = this.#failingDisk(usual);
    databases.diskOf = (machine) =>
      machine === this.operator ? sound(null) : this.diskFaults.size > 0 ? failing : usual;
    scheduler.sleepUntil = () => this.#sleepUntil();
    network.attach(this.operator, '6.0.0.250');
    this.postern = new PosternProcess({
      network,
      name: 'node1',
      address: posternAddress,
      dataDir: join(this.directory, 'node1'),
      settings: { ...settings, ...random.stream('limits').pick(limits) },
      random: random.stream('postern').next,
      onLogged: (level, text) => {
        if (level === 'error') this.errors.push({ at: scheduler.time, text });
        if (level !== 'info') this.book.tell(-1, `${level}: ${text}`);
      },
      onMailLog: (lines) => this.#noteMailLog(lines),
      onKill: () => {
        this.#rows?.close();
        this.#rows = null;
      },
    });
  }

  /** Starts the service, with its organizations, and the hosts that take their mail. */
  async open(): Promise<void> {
    this.#addHosts();
    this.postern.boot();
    await scheduler.runUntil(scheduler.now + 60_000, () => this.postern.isUp);
    if (!this.postern.isUp) throw new Error(`the service does not start: ${this.errors.at(-1)?.text}`);
    let isReady = false;
    const addTenants = () =>
      void this.#addTenants().then(() => {
        isReady = true;
      });
    scheduler.after(0, addTenants, this.operator);
    await scheduler.runUntil(scheduler.now + 60_000, () => isReady);
  }

  /** The time of the service's clock. */
  get serviceTime(): number {
    return scheduler.time + this.postern.clockAheadMs;
  }

  /** What `postern status` says; null: the service is down, or the database fails. */
  async status(): Promise<Status | null> {
    if (!this.postern.isUp) return null;
    let said: Status | null | undefined;
    const ask = () => {
      const parts = { db: this.db, config: this.postern.config, now: scheduler.wallClock() };
      readStatus(parts).then(
        (status) => {
          said = status;
        },
        () => {
          said = null;
        },
      );
    };
    scheduler.after(0, ask, this.operator);
    await scheduler.runUntil(scheduler.now + 30_000, () => said !== undefined);
    return said ?? null;
  }

  #failingDisk(usual: Disk): Disk {
    const { diskFaults } = this;
    return {
      latencyMs(isCommit) {
        let ms = usual.latencyMs(isCommit);
        for (const { extraMs } of diskFaults) ms += extraMs?.(isCommit) ?? 0;
        return ms;
      },
      failure(sql, isWrite) {
        for (const { failure } of diskFaults) {
          const code = failure?.(sql, isWrite);
          if (code) return code;
        }
        return null;
      },
    };
  }

  /** Of the machine of the service, where the operator's commands run too. */
  setClock(byMs: number): void {
    this.wasClockMoved = true;
    this.postern.clockAheadMs += byMs;
    this.operator.clockAheadMs = this.postern.clockAheadMs;
  }

  close(): void {
    this.postern.kill();
    for (const connections of databases.open.values()) for (const one of connections) one.abandon();
    databases.open.clear();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Null if the database cannot be read now. */
  rows(): Rows | null {
    this.#rows ??= Rows.open(this.databaseFile);
    return this.#rows?.refresh() ?? null;
  }

  get databaseFile(): string {
    return join(this.directory, 'node1', 'postern.sqlite');
  }

  /** Until when no mail and no webhook falls due. Not while any is under way. */
  #sleepUntil(): number {
    const rows = this.postern.isUp ? this.rows() : null;
    if (!rows) return Number.NEGATIVE_INFINITY;
    const due = rows.due(Math.floor(this.serviceTime));
    if (due.underWay > 0) return Number.NEGATIVE_INFINITY;
    const maxMs = due.overdue > 0 ? sleepMs.beforeClosedDoors : sleepMs.atRest;
    const nextMs = due.next === null ? maxMs : due.next - this.serviceTime;
    return scheduler.now + Math.min(maxMs, nextMs);
  }

  #addHosts(): void {
    for (let number = 0; number < domainCount; number++) {
      const name = `there${number}.example`;
      const domain: Domain = { name, hosts: [], addresses: [] };
      for (let at = 0; at < 1 + (number % 2); at++) {
        const host = `mx${at}.${name}`;
        const address = `5.0.${number}.${at + 1}`;
        const parts = { book: this.book, random: this.random.stream(host), returnsTo: posternAddress };
        domain.hosts.push(new Exchanger(this.network, host, address, parts));
        domain.addresses.push(address);
        this.names.set({ [host]: { A: [address] } });
      }
      this.names.set({
        [name]: { MX: domain.hosts.map((host, at) => ({ exchange: host.name, priority: 10 * (at + 1) })) },
      });
      this.domains.push(domain);
    }
  }

  async #addTenants(): Promise<void> {
    this.db = await openDatabase(this.postern.config);
    for (let number = 0; number < tenantCount; number++) {
      const hook = `hook${number}.example`;
      const address = `8.0.0.${number + 1}`;
      this.endpoints.push(new Endpoint(this.network, hook, address, this.book));
      this.names.set({ [hook]: { A: [address] } });
      const plan = { number, emailsPerDay: number === 1 ? 12 : null, webhookUrl: `http://${hook}/events` };
      const tenant = await insertTenant(this.db, { config: this.postern.config, names: this.names }, plan);
      this.tenants.push(tenant);
      const parts = {
        network: this.network,
        book: this.book,
        tenant,
        random: this.random.stream(`caller ${number}`),
      };
      this.callers.push(new Caller({ ...parts, target: () => [posternAddress, apiPort] }));
    }
  }

  #noteMailLog(lines: string): void {
    for (const line of lines.split('\n')) {
      const emailId = /"emailId":"([^"]+)"/.exec(line)?.[1];
      const mail = emailId === undefined ? undefined : this.book.byEmailId.get(emailId);
      if (mail) this.book.tell(mail.number, `mail log: ${JSON.parse(line).msg}`);
    }
  }
}

/** In memory if the machine has such a file system. */
function directoryOf(): string {
  return process.platform === 'linux' ? '/dev/shm' : tmpdir();
}
