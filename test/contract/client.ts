/**
 * The two worlds of the contract tests, and organizations of a test's own in them, which keep the tests apart. The tests
 * know docs/api.md and docs/design.md; from src/ comes here only what opens an account.
 *
 * In `sharedWorld` the clock stands still at noon, so that a window of a second or two ends for no test. Serial tests,
 * which run alone, turn the clock of `turningWorld`.
 */
import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { newKey } from '#accounts/api-keys.ts';
import { grant, setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertKey, revokeKey } from '#accounts/rows/keys.ts';
import { insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { addSuppression } from '#accounts/rows/suppressions.ts';
import { contextOfFile } from '#lab/context-of-file.ts';
import { changeTable } from '#lab/database/change-table.ts';
import { oneKind } from '#lab/database/databases.ts';
import { type Answer, startWorld, tenantName, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { compareKey } from '#platform/values/address.ts';

export const sendPath = '/api/public/email/send';
export const emailPath = (id: string) => `/api/public/email/${id}`;
/** Nobody's, but well formed. */
export const nobodysId = '0197a000-0000-7000-8000-000000000000';

const day = 86_400_000;
/** Milliseconds until the windows of the day end. */
export const toMidnight = ({ clock }: World) => day - (clock.now() % day);

const zone = { 'xn--bcher-kva.invalid': { MX: ['10 mx1.invalid'] } };

/** Started at the first call, whichever file of the process it comes from. */
function once(options: WorldOptions, prepare?: (world: World) => Promise<unknown>) {
  const context = contextOfFile();
  let started: Promise<World> | undefined;
  return () => {
    started ??= startWorld(context, { zone, ...options }).then(async (world) => {
      await prepare?.(world);
      return world;
    });
    return started;
  };
}

const atNoon = once({}, (made) => made.clock.advance(toMidnight(made) + day / 2));
const turning = once({ settings: { POSTERN_CREDITS_LOW: '50', POSTERN_IDEMPOTENCY_KEEP: '72h' } });

const use = (world: () => Promise<World>) => (prepare?: (made: World) => Promise<void>) => {
  let made: World | undefined;
  test.before(async () => {
    made = await world();
    await prepare?.(made);
  });
  return () => made!;
};

export const sharedWorld = use(atNoon);
/** For serial tests alone. */
export const turningWorld = use(turning);

// The client.

export interface Call {
  body?: string | Buffer | object;
  /** Over those of a good call; null takes one away. */
  headers?: Record<string, string | null>;
  /** The client's address, 127.x.x.x. */
  from?: string;
}

let recipients = 0;
/** A recipient that no other send of this file has, or the duplicate window would swallow it. */
/** A good send to somebody new, the fields given set over it; undefined takes one away. */
export const mail = (fields: object = {}) => ({
  from: 'App <app@sender.invalid>',
  to: someone(),
  subject: 'Hello',
  text: 'Hi',
  ...fields,
});

export const someone = (domain = 'there.invalid') => `r${recipients++}@${domain}`;
export const people = (count: number, domain?: string) =>
  Array.from({ length: count }, () => someone(domain));

let strangers = 0;
/** An address of its own for a client without a right key: failed keys are counted by address. */
export const elsewhere = () => {
  strangers++;
  return `127.1.${strangers >> 8}.${strangers & 255}`;
};

export type Client = ReturnType<typeof client>;

export function client(world: World, key: string | null) {
  const call = async (method: string, path: string, options: Call = {}): Promise<Answer> => {
    const { body, from } = options;
    const content = typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body;
    const headers: Call['headers'] = {
      authorization: key === null ? null : `Bearer ${key}`,
      'content-type': body === undefined ? null : 'application/json',
      ...options.headers,
    };
    const given = Object.entries(headers).filter((header) => header[1] !== null);
    const response = await exchange(`${world.url()}${path}`, {
      method,
      headers: Object.fromEntries(given) as Record<string, string>,
      body: content ?? '',
      localAddress: from,
    });
    const said = await text(response);
    return {
      status: response.statusCode!,
      headers: new Headers(response.headers as Record<string, string>),
      body: said === '' ? null : JSON.parse(said),
    };
  };
  return {
    key,
    call,
    send: (fields: object = {}, options: Call = {}) =>
      call('POST', sendPath, { body: mail(fields), ...options }),
    get: (emailId: string) => call('GET', emailPath(emailId)),
  };
}

interface Exchange {
  method: string;
  headers: Record<string, string>;
  body: string | Buffer;
  localAddress?: string;
}

/** One request on a connection of its own, with no header but those given. */
function exchange(url: string, { body, ...options }: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false });
    const length = body.length > 0 ? { 'content-length': String(Buffer.byteLength(body)) } : {};
    const headers = { ...length, ...options.headers };
    const sent = request(url, { ...options, headers, agent }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

// Organizations.

export type Tenant = Awaited<ReturnType<typeof openTenant>>;

export interface TenantOptions {
  quota?: number | null;
  wallet?: number;
  scopes?: string[];
  /** Those left out are unlimited; 'default' sets none. */
  limits?: Partial<Parameters<typeof setLimits>[2]> | 'default';
  /** Columns of its domain sender.invalid. */
  domain?: object;
}

/** An organization with unlimited quota, a key of full_access and the verified domain sender.invalid, unless told. */
export async function openTenant(world: World, options: TenantOptions = {}) {
  const { quota = null, wallet = 0, scopes = ['full_access'], limits = {}, domain = {} } = options;
  const { db } = world;
  const now = world.clock.now();
  const orgId = await db.transaction(async (trx) => {
    const id = await insertOrganization(trx, await tenantName(trx), now);
    await setQuota(trx, id, quota, now);
    if (wallet > 0) await grant(trx, id, wallet, now);
    if (limits !== 'default') {
      const none = { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null };
      await setLimits(trx, id, { ...none, ...limits });
    }
    return id;
  });
  const addKey = async (...granted: string[]) => {
    const { key, hash, hint } = newKey();
    await insertKey(db, { orgId, label: 'test', hash, hint, scopes: granted }, now);
    return client(world, key);
  };
  /** Like sender.invalid of the world's own organization but for its name and some columns. */
  const addDomain = async (name: string, columns: object = {}) => {
    const model = await db('domains').where({ name: 'sender.invalid' }).orderBy('id').first();
    await db('domains').insert({ ...model, id: uuid(), org_id: orgId, name, ...columns });
  };
  await addDomain('sender.invalid', domain);
  return {
    ...(await addKey(...scopes)),
    orgId,
    addKey,
    addDomain,
    async suppress(...addresses: string[]) {
      for (const address of addresses) {
        const suppression = { orgId, address, addressKey: compareKey(address), reason: 'test' };
        await addSuppression(db, suppression, now);
      }
    },
    async revoke({ key }: Client) {
      const hash = createHash('sha256').update(key!).digest('hex');
      const { id } = await db('api_keys').where({ hash }).first();
      await revokeKey(db, id, now);
    },
    /** What is left, and what was kept of all sends. */
    async books() {
      const { quota_limit, quota_used, wallet } = await db('organizations').where({ id: orgId }).first();
      const emails = (await db('emails').where({ org_id: orgId })).length;
      const changes: number[] = await db('credit_entries').where({ org_id: orgId }).pluck('change');
      const ledger = changes.reduce((sum, change) => sum + change, 0);
      return { emails, quota: quota_limit - quota_used, wallet, ledger };
    },
  };
}

/** Until it is mended, keeping an email with this subject fails, whoever sends it. */
export async function breakSubject({ db }: World, subject: string): Promise<() => Promise<unknown>> {
  const name = `broken_${subject}`;
  const abort =
    oneKind === 'postgres'
      ? `for each row when (new.subject = '${subject}') execute function ${name}()`
      : `when new.subject = '${subject}' begin select raise(abort, 'broken'); end`;
  if (oneKind === 'postgres') {
    const body = `begin raise exception 'broken'; end`;
    await db.raw(
      `create function ${name}() returns trigger language plpgsql as '${body.replaceAll("'", "''")}'`,
    );
  }
  await changeTable(db, 'emails', `create trigger ${name} before insert on emails ${abort}`);
  const drop = `drop trigger ${name}${oneKind === 'postgres' ? ' on emails' : ''}`;
  return () => changeTable(db, 'emails', drop);
}
