/** Everything of one run: the service, the actors around it, and the book. Builds it, in the order in which it starts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readStatus, type Status } from '#operate/status/read-status.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { Caller } from './actors/caller.ts';
import { Endpoint } from './actors/endpoint.ts';
import { Exchanger } from './actors/exchanger.ts';
import { insertTenant, type Tenant } from './actors/tenants.ts';
import { Writer } from './actors/writer.ts';
import { Book } from './book.ts';
import { Rows } from './invariants/rows.ts';
import { type Disk, databases, sound } from './machine/database.ts';
import { Links } from './machine/links.ts';
import type { Names } from './machine/names.ts';
import type { Network } from './machine/network.ts';
import { abandonAll, PosternProcess } from './machine/postern-process.ts';
import { PostgresRelay } from './machine/postgres-relay.ts';
import { type Machine, scheduler } from './machine/scheduler.ts';
import type { SharedPostgres } from './machine/shared-postgres.ts';
import type { Random } from './random.ts';

interface DiskFault extends Partial<Pick<Disk, 'failure'>> {
  extraMs?: (isCommit: boolean) => number;
}

export interface Domain {
  name: string;
  hosts: Exchanger[];
  addresses: string[];
}

/** The longest sleep of the service while nothing happens. */
const sleepMs = { beforeClosedDoors: 10_000, atRest: 30 * 60_000 };
const apiPort = 80;
const addressOf = (node: number) => `6.0.0.${node + 1}`;
export const postgresAddress = '9.0.0.1';
const databaseUrl = `postgres://postgres@${postgresAddress}:5432/simulated`;
const tenantCount = 3;
/** With few, faults and mail meet at the same ones. */
const domainCounts = [1, 2, 5];

/** Small limits make mail wait for its turn. */
const limits = [
  { POSTERN_MTA_CONCURRENCY: '500', POSTERN_MTA_PER_DESTINATION: '20' },
  { POSTERN_MTA_CONCURRENCY: '4', POSTERN_MTA_PER_DESTINATION: '20' },
  { POSTERN_MTA_CONCURRENCY: '100', POSTERN_MTA_PER_DESTINATION: '2' },
];

const settings = {
  POSTERN_HOSTNAME: 'post.example',
  POSTERN_HTTP_PORT: String(apiPort),
  POSTERN_INBOUND_PORT: '25',
  POSTERN_BACKUPS: 'off',
  POSTERN_IDEMPOTENCY_KEEP: '1h',
  POSTERN_MTA_MAX_AGE: '2h',
};

export interface SceneParts {
  network: Network;
  names: Names;
  /** Null: SQLite. */
  postgres: SharedPostgres | null;
  nodes: number;
}

export class Scene {
  readonly random: Random;
  readonly network: Network;
  readonly names: Names;
  readonly links: Links;
  readonly book = new Book();
  readonly directory = mkdtempSync(join(directoryOf(), 'postern-simulation-'));
  readonly nodes: PosternProcess[];
  /** Null: one node on SQLite. */
  readonly #postgres: SharedPostgres | null;
  readonly domains: Domain[] = [];
  readonly endpoints: Endpoint[] = [];
  readonly callers: Caller[] = [];
  readonly writer: Writer;
  readonly tenants: Tenant[] = [];
  /** Where the commands of the command line run. */
  readonly operator: Machine = { name: 'operator', isAlive: true, clockAheadMs: 0, isService: true };
  /** The operator's connection. */
  db!: Db;
  readonly diskFaults = new Set<DiskFault>();
  wasClockMoved = false;
  /** That the service's clock has shown, before it was set last. */
  #latestTime = 0;
  /** The most deliveries that were leased at a time. */
  maxLeased = 0;
  readonly #callers: Random;
  #rows: Rows | null = null;
  /** What the service itself logged as an error. */
  readonly errors: { at: number; text: string }[] = [];

  constructor(random: Random, { network, names, postgres, nodes }: SceneParts) {
    this.#postgres = postgres;
    this.random = random;
    this.network = network;
    this.names = names;
    this.links = new Links(random.stream('links'));
    this.#callers = random.stream('callers');
    network.linkBetween = this.links.between;
    databases.statements = databases.commits = databases.failures = 0;
    databases.onStatement = null;
    const usual = sound(random.stream('disk'));
    const failing = this.#failingDisk(usual);
    databases.onCommit = () => this.#noteLeases();
    databases.isCounted = (machine) => machine !== this.operator;
    databases.diskOf = (machine) =>
      machine === this.operator ? sound(null) : this.diskFaults.size > 0 ? failing : usual;
    scheduler.sleepUntil = () => this.#sleepUntil();
    network.attach(this.operator, '6.0.0.250');
    this.writer = new Writer({
      network,
      book: this.book,
      random: random.stream('writer'),
      target: addressOf(0),
    });
    if (postgres) {
      const { port: realPort } = postgres;
      void new PostgresRelay(network, postgresAddress, { realPort, random: random.stream('postgresql') });
    }
    const drawn = random.stream('limits').pick(limits);
    this.nodes = Array.from({ length: nodes }, (_, number) =>
      this.#newNode(number, { ...settings, ...drawn }),
    );
  }

  #newNode(number: number, shared: Record<string, string>): PosternProcess {
    const name = `node${number + 1}`;
    const own = {
      POSTERN_HTTP_HOST: addressOf(number),
      ...(this.#postgres && {
        POSTERN_MTA_MAX_AGE: '20m',
        POSTERN_DATABASE_URL: databaseUrl,
        POSTERN_SECRET: 'one secret for all nodes',
      }),
    };
    return new PosternProcess({
      network: this.network,
      name,
      address: addressOf(number),
      dataDir: join(this.directory, name),
      settings: { ...shared, ...own },
      random: this.random.stream(number === 0 ? 'postern' : name).next,
      onLogged: (level, logged) => {
        // Its name differs from run to run.
        const text = logged.replaceAll(this.directory, '');
        if (level === 'error') this.errors.push({ at: scheduler.time, text });
        if (level !== 'info') this.book.tell(-1, `${name} ${level}: ${text}`);
      },
      onMailLog: (lines) => this.#noteMailLog(lines),
      onKill: (hasPower) => {
        if (this.#postgres) return;
        this.#rows?.close();
        this.#rows = null;
        if (!hasPower) this.#restartOperator();
      },
    });
  }

  /** All nodes. */
  get isUp(): boolean {
    return this.nodes.every(({ isUp }) => isUp);
  }

  get config(): Config {
    return this.nodes[0]!.config;
  }

  /** Starts the service, with its organizations, and the hosts that take their mail. */
  async open(): Promise<void> {
    this.#addHosts();
    await this.#postgres?.reset();
    for (const node of this.nodes) node.boot();
    await scheduler.runUntil(scheduler.now + 60_000, () => this.isUp);
    if (!this.isUp) throw new Error(`the service does not start: ${this.errors.at(-1)?.text}`);
    let isReady = false;
    const addTenants = () =>
      void this.#addTenants().then(() => {
        isReady = true;
      });
    scheduler.after(0, addTenants, this.operator);
    await scheduler.runUntil(scheduler.now + 60_000, () => isReady);
  }

  /** The time of the service's clock; nodes on PostgreSQL have PostgreSQL's. */
  get serviceTime(): number {
    return scheduler.time + (this.#postgres ? 0 : this.nodes[0]!.clockAheadMs);
  }

  /** The longest that the service can take something for old that was taken at this true time. */
  maxAgeOf(at: number): number {
    return Math.max(this.#latestTime, this.serviceTime) - at;
  }

  /** What `postern status` says; null: the service is down, or the database fails. With PostgreSQL it depends on the real time. */
  async status(): Promise<Status | null> {
    if (!this.isUp || this.#postgres) return null;
    let said: Status | null | undefined;
    const ask = () => {
      const parts = { db: this.db, config: this.config, now: scheduler.wallClock() };
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
      failure() {
        for (const { failure } of diskFaults) {
          const code = failure?.();
          if (code) return code;
        }
        return null;
      },
    };
  }

  /** Of the machine of a node; the operator's commands run on that of the first. */
  setClock(node: PosternProcess, byMs: number): void {
    this.wasClockMoved = true;
    this.#latestTime = Math.max(this.#latestTime, this.serviceTime);
    node.clockAheadMs += byMs;
    if (node === this.nodes[0]) this.operator.clockAheadMs = node.clockAheadMs;
  }

  close(): void {
    for (const node of this.nodes) node.kill();
    for (const connections of databases.open.values()) abandonAll(connections);
    databases.open.clear();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Null if the database cannot be read now. */
  rows(): Rows | null {
    if (!this.#postgres) this.#rows ??= Rows.open(this.databaseFile);
    return this.#rows?.refresh() ?? null;
  }

  /** Rows of PostgreSQL are read between events. */
  async loadRows(): Promise<void> {
    if (this.#postgres) this.#rows = await Rows.copyOf(this.#postgres);
  }

  get databaseFile(): string {
    return join(this.directory, 'node1', 'postern.sqlite');
  }

  /** Most of them last less than the time between two checks. */
  #noteLeases(): void {
    this.maxLeased = Math.max(this.maxLeased, this.rows()?.leased() ?? 0);
  }

  /** Until when no mail and no webhook falls due. Not while any is under way. */
  #sleepUntil(): number {
    const rows = this.isUp && !this.#postgres ? this.rows() : null;
    if (!rows) return Number.NEGATIVE_INFINITY;
    const due = rows.due(Math.floor(this.serviceTime));
    if (due.underWay > 0) return Number.NEGATIVE_INFINITY;
    const maxMs = due.overdue > 0 ? sleepMs.beforeClosedDoors : sleepMs.atRest;
    const nextMs = due.next === null ? maxMs : due.next - this.serviceTime;
    return scheduler.now + Math.min(maxMs, nextMs);
  }

  #addHosts(): void {
    const count = this.random.stream('domains').pick(domainCounts);
    for (let number = 0; number < count; number++) {
      const name = `there${number}.example`;
      const domain: Domain = { name, hosts: [], addresses: [] };
      for (let at = 0; at < 1 + (number % 2); at++) {
        const host = `mx${at}.${name}`;
        const address = `5.0.${number}.${at + 1}`;
        const parts = { book: this.book, random: this.random.stream(host), returnsTo: addressOf(0) };
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

  /** The commands of the command line run on the same machine. */
  #restartOperator(): void {
    abandonAll(databases.open.get(this.operator));
    const open = async () => {
      this.db = await openDatabase(this.config);
    };
    scheduler.after(0, () => void open(), this.operator);
  }

  async #addTenants(): Promise<void> {
    this.db = await openDatabase(this.config);
    for (let number = 0; number < tenantCount; number++) {
      const hook = `hook${number}.example`;
      const address = `8.0.0.${number + 1}`;
      this.endpoints.push(new Endpoint(this.network, hook, address, this.book));
      this.names.set({ [hook]: { A: [address] } });
      const emailsPerDay = number === 1 ? this.random.stream('daily limit').pick([10, 40]) : null;
      const plan = { number, emailsPerDay, webhookUrl: `http://${hook}/events` };
      const tenant = await insertTenant(this.db, { config: this.config, names: this.names }, plan);
      this.tenants.push(tenant);
      const parts = {
        network: this.network,
        book: this.book,
        tenant,
        random: this.random.stream(`caller ${number}`),
      };
      this.callers.push(new Caller({ ...parts, target: () => [this.#addressForCaller(), apiPort] }));
    }
  }

  /** As a load balancer chooses. */
  #addressForCaller(): string {
    const up = this.nodes.filter(({ isUp }) => isUp);
    return this.#callers.pick(up.length > 0 ? up : this.nodes).address;
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
