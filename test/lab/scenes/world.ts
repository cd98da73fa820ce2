/**
 * A world for one test: a DNS, mail exchangers, and the real Postern between them, started as the program starts
 * itself, on ephemeral ports of loopback, with a directory, a database and a clock of its own. Everything ends with
 * the test.
 *
 *   const world = await startWorld(t, { zone: { 'there.invalid': { MX: ['10 mx1.invalid'] } … } });
 *   const { body } = await world.send({ to: 'a@there.invalid' });
 *   await world.settled(body.emailId);
 */
import type { ExecutionContext } from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { insertKey } from '#accounts/rows/keys.ts';
import { insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { createSeal } from '#accounts/seal.ts';
import { newId } from '#platform/base/id.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import type { Overrides } from '#server/context.ts';
import { start } from '#server/start.ts';
import { type ManualClock, manualClock } from '../clock.ts';
import { createMigrated, type DatabaseKind, nameOf, oneKind } from '../database/databases.ts';
import { hasStatements } from '../database/statements.ts';
import { dkimKey } from '../dkim.ts';
import { type Dns, startDns, type Zone } from '../dns/dns.ts';
import { keepOnFailure, memoryLog, rowsOf, temporaryDirectory } from '../evidence.ts';
import { type Mx, type MxOptions, startMxs } from '../mx/mx.ts';
import { threadsHere } from '../threads-here.ts';
import { until } from '../until.ts';

export interface WorldOptions {
  /** Beside the exchangers' own names: mx1.invalid is 127.0.0.2, mx2.invalid 127.0.0.3, and so on. */
  zone?: Zone;
  /** One exchanger for each element; none needs options. */
  exchangers?: MxOptions[];
  database?: DatabaseKind;
  /** A PostgreSQL that is there already. */
  databaseUrl?: string;
  settings?: Record<string, string>;
  overrides?: Partial<Overrides>;
  tenant?: Tenant;
}

interface Tenant {
  quota?: number | null;
  /** For the database of an older commit, whose columns are fewer than the ledger's functions read. */
  withoutLedger?: boolean;
  scopes?: string[];
  /** Its key is a test key. */
  isTest?: boolean;
}

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the tests look at
  body: any;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

export async function startWorld(t: ExecutionContext, options: WorldOptions = {}) {
  const { exchangers = [{}], database: kind = oneKind } = options;
  const dataDir = await temporaryDirectory(t);
  const database = options.databaseUrl
    ? { url: options.databaseUrl, drop: async () => {} }
    : await createMigrated(kind, dataDir);
  t.teardown(() => database.drop());
  const mx = await startMxs(
    exchangers.map((mxOptions, index) => ({ host: `127.0.0.${index + 2}`, ...mxOptions })),
  );
  t.teardown(() => Promise.all(mx.map((one) => one.close())));
  const dns = await startDns({
    ...exchangerNames(mx),
    'there.invalid': { MX: ['10 mx1.invalid'] },
    ...options.zone,
  });
  t.teardown(() => dns.close());

  const config = testConfig(
    { dataDir, databaseUrl: database.url, dns, mtaPort: mx[0]!.port },
    options.settings,
  );
  const clock = manualClock(Date.now(), () => hasStatements(nameOf(database, dataDir)));
  /** Passwords cost next to nothing here. */
  const overrides = { random: () => 0.5, passwordCost: { N: 2, r: 1, p: 1 }, ...threadsHere };
  const { log, text } = memoryLog();
  const launch = () => start(config, { clock, ...overrides, log, ...options.overrides });
  let postern = await launch();
  const db = await openDatabase(config);
  t.teardown(async () => {
    await postern.stop();
    await db.destroy();
  });
  keepOnFailure(t, dataDir, 'server.log', text);
  keepOnFailure(t, dataDir, 'rows.txt', () => rowsOf(db));
  keepOnFailure(t, dataDir, 'smtp.txt', () => mx.map(({ host, sessions }) => ({ host, sessions })));

  const { key, orgId } = await insertTenant(db, config, dns, options.tenant);

  return {
    dns,
    mx,
    clock,
    db,
    config,
    key,
    orgId,
    ...callsWith(() => postern.url, key, clock),
    async restart() {
      await postern.stop();
      postern = await launch();
    },
    stop: () => postern.stop(),
    url: () => postern.url,
    setUpUrl: () => postern.setUpUrl,
    hasProgressed: () => postern.hasProgressed(),
    noteLeap: (byMs: number) => postern.noteLeap(byMs),
  };
}

/** The same world for another organization: a new one costs a hundredth of a world. */
export async function asNewTenant(world: World, options: WorldOptions['tenant'] = {}): Promise<World> {
  const { key, orgId } = await insertTenant(world.db, world.config, world.dns, options);
  return { ...world, key, orgId, ...callsWith(world.url, key, world.clock) };
}

type Holds = (email: Answer['body']) => boolean;

function callsWith(url: () => string, key: string, clock: ManualClock) {
  /** The same calls to another node. */
  const at = (elsewhere: string) => callsTo(() => elsewhere, key, clock);
  return { ...callsTo(url, key, clock), at };
}

function callsTo(url: () => string, key: string, clock: ManualClock) {
  const call = async (method: string, path: string, init: RequestInit = {}): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers };
    const ask = () => fetch(`${url()}${path}`, { method, ...init, headers });
    // A connection that was kept open may be closed at the moment of its next request (RFC 9112 section 9.3.1).
    const response = await ask().catch((error) => (method === 'GET' ? ask() : Promise.reject(error)));
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const get = async (emailId: string) => (await call('GET', `/api/public/email/${emailId}`)).body;
  const untilEmail = (wait: typeof until, emailId: string, holds: Holds) => {
    let last: unknown;
    return wait(
      async () => {
        last = await get(emailId);
        return holds(last) && (last as Answer['body']);
      },
      { what: () => `the email to come that far; last: ${JSON.stringify(last)}` },
    );
  };
  return {
    call,
    get,
    /** Sends; fields that are not given get plain ones. */
    send: (fields: object) =>
      call('POST', '/api/public/email/send', {
        body: JSON.stringify({
          from: 'App <app@sender.invalid>',
          subject: 'Hello',
          text: 'Hello there',
          ...fields,
        }),
      }),
    /** The email, once `holds` holds of it. */
    when: (emailId: string, holds: Holds) => untilEmail(until, emailId, holds),
    /** The same, on a clock that goes on. */
    passUntil: (emailId: string, holds: Holds) => untilEmail(clock.passUntil, emailId, holds),
  };
}

function exchangerNames(mx: Mx[]): Zone {
  return Object.fromEntries(mx.map(({ host }, index) => [`mx${index + 1}.invalid`, { A: [host] }]));
}

interface TestEnvironment {
  dataDir: string;
  databaseUrl: string | null;
  dns: Dns;
  mtaPort: number;
}

export function testConfig(environment: TestEnvironment, settings = {}): Config {
  return loadConfig(testSettings(environment, settings));
}

/** As a process by itself gets them, in its environment. */
export function testSettings({ dataDir, databaseUrl, dns, mtaPort }: TestEnvironment, settings = {}) {
  return {
    POSTERN_DATA_DIR: dataDir,
    ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
    POSTERN_HOSTNAME: 'postern.invalid',
    POSTERN_HTTP_PORT: '0',
    POSTERN_DNS_SERVERS: dns.address,
    POSTERN_MTA_PORT: String(mtaPort),
    POSTERN_MTA_ALLOW_PRIVATE: 'true',
    POSTERN_SMTP_HOST: '127.0.0.1',
    POSTERN_LOG_LEVEL: 'silent',
    POSTERN_BACKUPS: 'off',
    ...settings,
  };
}

/** The first is called Tenant; names are unique. */
export async function tenantName(db: Db): Promise<string> {
  const first = await db('organizations').where({ name: 'Tenant' }).first('id');
  return first ? `Tenant ${newId()}` : 'Tenant';
}

/** The key of a new organization, as insertTenant makes it. */
export async function createTenant(...args: Parameters<typeof insertTenant>): Promise<string> {
  return (await insertTenant(...args)).key;
}

/** An organization without limits, its key, and the verified domain sender.invalid with its DKIM record in DNS. */
export async function insertTenant(
  db: Db,
  config: Config,
  dns: Dns,
  { quota = null, withoutLedger = false, scopes = ['full_access'], isTest = false }: Tenant = {},
) {
  const now = Date.now();
  const { key, hash, hint } = newKey({ isTest });
  const orgId = await db.transaction(async (trx) => {
    const id = await insertOrganization(trx, await tenantName(trx), now);
    if (withoutLedger) await trx('organizations').where({ id }).update({ quota_limit: quota });
    else await setQuota(trx, id, quota, now);
    await setLimits(trx, id, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null });
    await insertKey(trx, { orgId: id, label: 'test', hash, hint, scopes, isTest }, now);
    const domainId = await insertDomain(
      trx,
      {
        orgId: id,
        name: 'sender.invalid',
        dkimSelector: dkimKey.selector,
        dkimPublicKey: dkimKey.publicKey,
        dkimPrivateKey: createSeal(loadSecrets(config)).close(dkimKey.privateKey),
      },
      now,
    );
    await setDomainStatus(trx, domainId!, 'verified', now);
    return id;
  });
  dns.set({
    [`${dkimKey.selector}._domainkey.sender.invalid`]: { TXT: [`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`] },
  });
  return { key, orgId };
}
