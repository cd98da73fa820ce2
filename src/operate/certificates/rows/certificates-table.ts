/**
 * The certificates of our own hosts, one row a host, also while there is none yet; their keys are sealed (accounts/seal.ts).
 * Every node uses them. A row is due at `attemptAt`, and the node that takes it asks the authority for that host.
 *
 * While the authority checks a host, its row has the challenge, which any node may have to answer.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';

/** `server`: one of the operator's. `tracking`: a customer's. `mta-sts`: the policy host of a sender domain. */
export type HostPurpose = 'server' | 'tracking' | 'mta-sts';

/** The reason for a missing certificate, or a missing new one. */
export interface CertificateProblem {
  /** `dns-…`, `authority`, or the last part of the authority's problem type (RFC 8555 section 6.7). */
  type: string;
  text: string;
  at: number;
  /** The settings under which the authority was asked (platform/settings/acme-settings.ts). */
  settings?: string;
}

const certificates = records({
  host: text,
  purpose: value<HostPurpose>(),
  /** PEM, the host's own certificate first; null: there is none yet. */
  chain: orNull(text),
  privateKey: orNull(text),
  notBefore: orNull(number),
  notAfter: orNull(number),
  attemptAt: number,
  /** How many attempts in a row have failed. */
  failures: number,
  failingSince: orNull(number),
  problem: orNull(json<CertificateProblem>()),
  token: orNull(text),
  keyAuthorization: orNull(text),
  /** When a node last found that the host needs a certificate. */
  wantedAt: number,
  updatedAt: number,
  /** Null: the operator's. */
  orgId: orNull(text),
  /** When the authority was first asked for a customer's host. */
  askedAt: orNull(number),
});

export type CertificateRecord = ReturnType<typeof certificates.read>;

export interface WantedHost {
  host: string;
  purpose: HostPurpose;
  /** Null: the operator's. */
  orgId: string | null;
}

const [hour, day] = [3_600_000, 86_400_000];
const batch = 500;

/** A host that no node has wanted for a day is not asked for. */
const wantedMs = day;
/** Every node notes its hosts once an hour, so a host that lags behind the others by this much is listed no more. */
const passedByMs = 2 * hour;

/** Three times as many as an organization can have at a time. Hosts beyond that are added as others are forgotten. */
const maxKeptHosts = 300;
/** Hosts of an organization that the authority is newly asked for within a day: its limits count for all of us together. */
export const maxNewHosts = 20;

/** Adds the hosts that are new, and notes about the others, once an hour, that they are still wanted. */
export async function wantHosts(db: Db, hosts: WantedHost[], now: number): Promise<void> {
  for (let at = 0; at < hosts.length; at += batch) {
    const some = hosts.slice(at, at + batch);
    const names = some.map(({ host }) => host);
    const known: { host: string; purpose: string; wanted_at: number; org_id: string | null }[] = await db(
      'certificates',
    )
      .whereIn('host', names)
      .select('host', 'purpose', 'wanted_at', 'org_id');
    const before = new Map(known.map((row) => [row.host, row]));
    const missing = await withinBounds(
      db,
      some.filter(({ host }) => !before.has(host)),
    );
    const rows = missing.map((one) =>
      certificates.write({ ...one, attemptAt: now, failures: 0, wantedAt: now, updatedAt: now }),
    );
    if (rows.length > 0) await db('certificates').insert(rows).onConflict('host').ignore();
    for (const { host, purpose, orgId } of some) {
      const row = before.get(host);
      if (row && (row.purpose !== purpose || row.org_id !== orgId || row.wanted_at < now - hour))
        await db('certificates').where({ host }).update({ purpose, org_id: orgId, wanted_at: now });
    }
  }
}

/** Leaves out hosts of organizations that have very many: one that changes its host all the time leaves a row for each. */
async function withinBounds(db: Db, hosts: WantedHost[]): Promise<WantedHost[]> {
  if (hosts.length === 0) return hosts;
  const orgIds = [...new Set(hosts.flatMap(({ orgId }) => orgId ?? []))];
  const rows: { org_id: string; count: number | string }[] = await db('certificates')
    .whereIn('org_id', orgIds)
    .groupBy('org_id')
    .select('org_id')
    .count('* as count');
  const counts = new Map(rows.map(({ org_id, count }) => [org_id, Number(count)]));
  return hosts.filter(({ orgId }) => {
    if (orgId === null) return true;
    counts.set(orgId, (counts.get(orgId) ?? 0) + 1);
    return counts.get(orgId)! <= maxKeptHosts;
  });
}

/**
 * Counts a customer's host that the authority is about to be asked for the first time. Null: it may be asked; otherwise the
 * organization has used up its new hosts of the day, and the time from which it has another. Written first and counted then,
 * so that several nodes together do not exceed the number.
 */
export async function admitNewHost(
  db: Db,
  { host, orgId, askedAt, notBefore }: Pick<CertificateRecord, 'host' | 'orgId' | 'askedAt' | 'notBefore'>,
  now: number,
): Promise<number | null> {
  if (orgId === null || askedAt !== null || notBefore !== null) return null;
  await db('certificates').where({ host }).update({ asked_at: now });
  const asked: number[] = await db('certificates')
    .where({ org_id: orgId })
    .whereBetween('asked_at', [now - day, now])
    .orderBy('asked_at')
    .limit(maxNewHosts + 1)
    .pluck('asked_at');
  if (asked.length <= maxNewHosts) return null;
  await db('certificates').where({ host }).update({ asked_at: null });
  return asked[0]! + day;
}

/** The authority limits this organization's hosts: none of them is due before `until`. */
export async function pauseHostsOf(db: Db, orgId: string, until: number): Promise<void> {
  await db('certificates')
    .where({ org_id: orgId })
    .where('attempt_at', '<', until)
    .update({ attempt_at: until });
}

/**
 * Takes a host that is due: the operator's first, then the longest due. It is due again at `until`, unless its result was
 * recorded by then, so that one node asks and a node that stops on the way loses nothing.
 */
export async function claimDueHost(
  db: Db,
  { now, until }: { now: number; until: number },
): Promise<CertificateRecord | null> {
  while (true) {
    const row = await db('certificates')
      .where('attempt_at', '<=', now)
      .where('wanted_at', '>', now - wantedMs)
      .orderByRaw("case when purpose = 'server' then 0 else 1 end, attempt_at, host")
      .first();
    if (!row) return null;
    const { host, attempt_at } = row;
    // Otherwise another node has just taken it.
    if ((await db('certificates').where({ host, attempt_at }).update({ attempt_at: until })) > 0)
      return certificates.read(row);
  }
}

/** When the first of the wanted hosts is due; infinite if there is none. */
export async function firstAttemptAt(db: Db, now: number): Promise<number> {
  const wanted = db('certificates').where('wanted_at', '>', now - wantedMs);
  return (await wanted.min('attempt_at as at').first())?.at ?? Number.POSITIVE_INFINITY;
}

export async function recordIssued(
  db: Db,
  host: string,
  issued: Pick<CertificateRecord, 'chain' | 'privateKey' | 'notBefore' | 'notAfter' | 'attemptAt'>,
  now: number,
): Promise<void> {
  const success = { failures: 0, failingSince: null, problem: null, token: null, keyAuthorization: null };
  await db('certificates')
    .where({ host })
    .update(certificates.write({ ...issued, ...success, updatedAt: now }));
}

export async function recordFailure(
  db: Db,
  { host, failingSince }: Pick<CertificateRecord, 'host' | 'failingSince'>,
  failed: { problem: CertificateProblem; failures: number; attemptAt: number },
): Promise<void> {
  const row = { ...failed, failingSince: failingSince ?? failed.problem.at };
  await db('certificates').where({ host }).update(certificates.write(row));
}

/** Nothing was asked; the host is due again at `attemptAt`. */
export async function postponeAttempt(db: Db, host: string, attemptAt: number): Promise<void> {
  await db('certificates').where({ host }).update({ attempt_at: attemptAt });
}

export async function setChallenge(
  db: Db,
  host: string,
  challenge: { token: string; keyAuthorization: string } | null,
  now: number,
): Promise<void> {
  const { token, keyAuthorization } = challenge ?? { token: null, keyAuthorization: null };
  await db('certificates')
    .where({ host })
    .update(certificates.write({ token, keyAuthorization, updatedAt: now }));
}

const changed = certificates.pick('host', 'purpose', 'notBefore', 'token', 'keyAuthorization', 'updatedAt');

export type ChangedHost = ReturnType<typeof changed.read>;

/** The hosts whose certificate or challenge has changed since then. */
export async function readChangedHosts(db: Db, since: number): Promise<ChangedHost[]> {
  const rows = await db('certificates').where('updated_at', '>=', since).select(changed.columns);
  return rows.map(changed.read);
}

export async function readCertificate(
  db: Db,
  host: string,
): Promise<{ chain: string; privateKey: string } | null> {
  const row = await db('certificates').where({ host }).whereNotNull('chain').first('chain', 'private_key');
  return row ? { chain: row.chain, privateKey: row.private_key } : null;
}

const listed = certificates.pick(
  'host',
  'purpose',
  'notBefore',
  'notAfter',
  'attemptAt',
  'failures',
  'failingSince',
  'problem',
);

export type ListedCertificate = ReturnType<typeof listed.read>;

/**
 * The wanted ones: the operator's, then those in trouble, then those that expire first. Policy hosts without a certificate come
 * last, because few sender domains have one.
 */
export async function listCertificates(
  db: Db,
  { now, limit, host }: { now: number; limit: number; host?: string },
): Promise<ListedCertificate[]> {
  const rows = await db('certificates')
    .where('wanted_at', '>', now - wantedMs)
    .whereRaw('wanted_at > (select max(wanted_at) - ? from certificates)', [passedByMs])
    .where(host === undefined ? {} : { host })
    .orderByRaw("case when purpose = 'mta-sts' and not_after is null then 1 else 0 end")
    .orderByRaw("case when purpose = 'server' then 0 else 1 end")
    .orderByRaw('case when failing_since is null then 1 else 0 end')
    .orderByRaw('not_after is null, not_after, host')
    .limit(limit)
    .select(listed.columns);
  return rows.map(listed.read);
}

/** Makes the host due now, and ends a pause of the authority. Returns false if the host is not wanted. */
export async function retryHost(db: Db, host: string, now: number): Promise<boolean> {
  const count = await db('certificates')
    .where({ host })
    .where('wanted_at', '>', now - wantedMs)
    .update({ attempt_at: now });
  if (count > 0) await db('acme_accounts').where('resume_at', '>', now).update({ resume_at: now });
  return count > 0;
}

/**
 * At a start: the operator's hosts that were refused under other settings are due now, and a pause of the authority ends.
 * `isAlone`: no other node wants hosts, so those that are not in `own` are not wanted.
 */
export async function beginWith(
  db: Db,
  { own, settings, isAlone, now }: { own: string[]; settings: string; isAlone: boolean; now: number },
): Promise<void> {
  const hosts = () => db('certificates').where({ purpose: 'server' });
  if (isAlone) await hosts().whereNotIn('host', own).update({ wanted_at: 0 });
  const refused = (await hosts().whereIn('host', own).whereNotNull('problem')).map(certificates.read);
  for (const { host, problem } of refused)
    if (problem!.settings !== undefined && problem!.settings !== settings) await retryHost(db, host, now);
}

/** The operator's hosts, of all nodes. */
export async function listServerHosts(db: Db, now: number): Promise<string[]> {
  return db('certificates')
    .where({ purpose: 'server' })
    .where('wanted_at', '>', now - wantedMs)
    .pluck('host');
}

/** Deletes the hosts that are no longer wanted and whose certificates have expired. */
export async function forgetCertificates(db: Db, now: number): Promise<number> {
  return (
    db('certificates')
      .where('wanted_at', '<', now - wantedMs)
      .where((over) => over.whereNull('not_after').orWhere('not_after', '<', now))
      // It still counts among the new ones of its organization.
      .where((old) => old.whereNull('asked_at').orWhere('asked_at', '<', now - day))
      .delete()
  );
}
