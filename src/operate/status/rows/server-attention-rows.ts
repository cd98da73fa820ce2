/**
 * The causes that keep organizations' mail from being accepted, sent or reported, over the whole server, for `postern status`, or
 * of one organization. Small tables, and the figures of one day by the hour.
 */

import { maxFailures } from '#accounts/rows/domain-checks.ts';
import { disabledByOwner } from '#mail/webhooks/endpoint-health.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { flag, inColumn, number, orNull, records, text } from '#platform/database/engine/records.ts';
import { lastIdOf } from '#platform/database/tables/time-of-id.ts';
import { serverOrgId } from '#platform/values/glossary.ts';

const domain = records({
  orgId: text,
  orgName: inColumn('organization', text),
  name: text,
  /** Null if it has never been verified. */
  failingSince: orNull(number),
  /** Its mail is refused. */
  isRefused: flag,
});

export type TroubledDomain = ReturnType<typeof domain.read>;

/** Domains that were verified, and whose DKIM record is now missing or wrong; of one organization, also new ones. */
export async function troubledDomains(db: Db, limit: number, orgId?: string): Promise<TroubledDomain[]> {
  const query = db('domains')
    .join('organizations', 'organizations.id', 'domains.org_id')
    .where((either) =>
      either.where('domains.status', 'pending').orWhere('domains.failures', '>=', maxFailures),
    )
    .orderByRaw('failing_since is null, failing_since')
    .limit(limit)
    .select('org_id', 'organizations.name as organization', 'domains.name', 'failing_since')
    .select(db.raw(`case when domains.status = 'pending' then 1 else 0 end as is_refused`));
  const rows = await (orgId === undefined
    ? query.whereNotNull('failing_since')
    : query.where({ org_id: orgId }));
  return rows.map(domain.read);
}

const unreached = domain.pick('name', 'orgId');

/** Domains of the organization that receive, but whose MX record does not lead here: the name, and since when. */
export async function domainsWithoutMx(db: Db, limit: number, orgId: string) {
  const rows = await db('domains')
    .where({ org_id: orgId, status: 'verified' })
    .whereNotNull('mx_missing_since')
    .orderBy(['mx_missing_since', 'id'])
    .limit(limit)
    .select('org_id', 'name', 'mx_missing_since');
  return rows.map((row) => ({ ...unreached.read(row), since: Number(row.mx_missing_since) }));
}

const store = records({
  orgId: text,
  orgName: inColumn('organization', text),
  bytes: number,
});

export type FullStore = ReturnType<typeof store.read>;

/** The organizations whose received mail takes at least so many bytes. */
export async function fullStores(db: Db, bytes: number, limit: number, orgId?: string): Promise<FullStore[]> {
  const rows = await db('received_stores')
    .where(orgId === undefined ? {} : { org_id: orgId })
    .where('bytes', '>=', bytes)
    .orderBy('bytes', 'desc')
    .limit(limit)
    .select('org_id', 'bytes');
  // The ids of organizations have another type in PostgreSQL.
  const names = await db('organizations')
    .whereIn(
      'id',
      rows.map((row) => row.org_id),
    )
    .select('id', 'name');
  return rows.map((row) =>
    store.read({ ...row, organization: names.find(({ id }) => id === row.org_id)?.name ?? '' }),
  );
}

const webhook = records({
  id: text,
  orgId: text,
  url: text,
  isDisabled: { column: 'status', read: (status) => status === 'disabled' },
  reason: orNull(text),
  failingSince: orNull(number),
  /** The error of its last attempt. */
  lastError: orNull(text),
});

export type TroubledWebhook = ReturnType<typeof webhook.read>;

/** Without those that their owners have disabled. */
export async function troubledWebhooks(db: Db, limit: number, orgId?: string): Promise<TroubledWebhook[]> {
  const rows = await db('webhooks')
    .where(orgId === undefined ? {} : { org_id: orgId })
    .where((either) =>
      either
        .whereNotNull('failing_since')
        .orWhere((disabled) =>
          disabled
            .where({ status: 'disabled' })
            .where((other) => other.whereNull('reason').orWhereNot('reason', disabledByOwner)),
        ),
    )
    .orderBy('id')
    .limit(limit)
    .select('webhooks.*')
    .select({
      last_error: db('webhook_attempts')
        .where('webhook_id', db.ref('webhooks.id'))
        .orderBy('id', 'desc')
        .limit(1)
        .select('error'),
    });
  return rows.map(webhook.read);
}

export interface OrganizationCounts {
  orgId: string;
  orgName: string;
  sent: number;
  delivered: number;
  bounced: number;
  complained: number;
}

/** How many of the organization's newest bounces since then are refusals because of a blocklist or our reputation. */
export async function blockedBounces(
  db: Db,
  orgId: string,
  since: number,
): Promise<{ blocked: number; of: number }> {
  const bounces: string[] = await db('emails')
    .join('deliveries', 'deliveries.email_id', 'emails.id')
    .where('emails.org_id', orgId)
    .where('emails.id', '>', lastIdOf(since))
    .where('deliveries.status', 'bounced')
    .orderBy('emails.id', 'desc')
    .limit(maxBounces)
    .pluck('deliveries.bounce');
  const blocked = bounces.filter((bounce) => bounce !== null && JSON.parse(bounce).category === 'blocked');
  return { blocked: blocked.length, of: bounces.length };
}

/** Enough to tell what most of them are. */
const maxBounces = 500;

/** The statistics since `since` for each organization that has had a bounce or a complaint. */
export async function countsSince(db: Db, since: number): Promise<OrganizationCounts[]> {
  const names = ['sent', 'delivered', 'bounced', 'complained'] as const;
  const query = db('statistics')
    .join('organizations', 'organizations.id', 'statistics.org_id')
    .where('hour', '>=', since)
    .whereNot({ org_id: serverOrgId })
    .groupBy('org_id', 'organizations.name')
    .havingRaw('sum(bounced) + sum(complained) > 0')
    .select('org_id', 'organizations.name as organization');
  for (const name of names) query.sum(`${name} as ${name}`);
  const rows = await query;
  return rows.map((row) => ({
    orgId: row.org_id,
    orgName: row.organization,
    ...(Object.fromEntries(names.map((name) => [name, Number(row[name])])) as Pick<
      OrganizationCounts,
      (typeof names)[number]
    >),
  }));
}
