/**
 * The troubles of one organization, as its owners see it: nothing of another organization, so no count of a destination's mail
 * and no reply, which may be about another's. Asked for every few seconds: each fact comes from a few rows of an index.
 */

import { longestWaiting, type WaitingMail } from '#accounts/rows/attention-rows.ts';
import { balanceOf, quotaState } from '#accounts/rows/credit-ledger.ts';
import type { Organization } from '#accounts/rows/organizations.ts';
import { listPauses } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import type { Counts } from '#mail/record/counts.ts';
import { readDestinationStatuses, routesOf } from '#mail/record/rows/destination-status-rows.ts';
import { causes } from '#operate/condition/causes.ts';
import { type Condition, conditionsAt, named } from '#operate/condition/condition.ts';
import {
  domainsWithoutMx,
  troubledDomains,
  troubledWebhooks,
} from '#operate/status/rows/server-attention-rows.ts';
import { elapsed } from '#platform/base/clock.ts';
import { dueIn, span } from '#platform/base/span.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';
import { type Need, ranked, thisServer } from './need.ts';
import { domainNeed, pauseNeed, rateNeeds, storeNeeds, webhookNeed } from './organization-needs.ts';

const maxOfAKind = 3;
const maxDestinations = 10;
/** Named in the URL of a list. */
const maxDomains = 8;
/** Most deferred mail is delivered within an hour. */
const longWaitMs = 3_600_000;

interface OwnerParts {
  db: Db;
  org: Organization;
  /** Figures of the last 7 days. */
  counts: Counts;
  /** Credits are low if less than this share of the quota is left. */
  lowShare: number;
  /** What received mail may take. */
  storeBytes: number;
  now: number;
}

/** Without commands, which owners cannot run. */
export async function readOwnerNeeds(parts: OwnerParts): Promise<Need[]> {
  const { db, org, counts, storeBytes, now } = parts;
  const all: NeedDraft[] = [
    ...creditNeeds(parts),
    ...rateNeeds({ ...counts, orgId: org.id, orgName: org.name }, '7 days'),
    ...(await waitingNeeds(parts)),
    ...(await listPauses(db, maxOfAKind, org.id)).map(pauseNeed),
    ...(await troubledDomains(db, maxOfAKind, org.id)).map(domainNeed),
    ...(await domainsWithoutMx(db, maxOfAKind, org.id)).map((one) => mxNeed(one, now)),
    ...(await troubledWebhooks(db, maxOfAKind, org.id)).map((one) => webhookNeed(one, now)),
    ...(await storeNeeds(db, storeBytes, 1, org.id)),
  ];
  return ranked(all.map((need) => ({ ...need, command: '' })));
}

export function creditNeeds({
  org,
  lowShare,
  now,
}: Pick<OwnerParts, 'org' | 'lowShare' | 'now'>): NeedDraft[] {
  const { limit, remaining, used, renewsAt } = quotaState(org, now);
  if (limit === null || remaining === null) return [];
  const renews = limit > 0 ? ` The quota renews in ${span(renewsAt - now)}.` : '';
  const need = {
    cause: 'credits' as const,
    subject: org.name,
    orgId: org.id,
    since: null,
    path: `/o/${org.id}/usage`,
  };
  const refused = `Sends are refused until credits are added.${renews}`;
  if (balanceOf({ ...org, quotaUsed: used }) === 0)
    return [{ ...need, severity: 'act', figure: 'none left', advice: refused }];
  const figure = `${remaining} of ${limit} left in the quota, ${org.wallet} in the wallet`;
  const isLow = limit > 0 && remaining <= limit * lowShare;
  return isLow
    ? [{ ...need, severity: 'watch', figure, advice: `Sends are refused without credits.${renews}` }]
    : [];
}

type NeedDraft = Omit<Need, 'command'>;

/** A new domain has some time for its record; later, mail is lost to the host that the record leads to. */
const setUpMs = 24 * 3_600_000;

function mxNeed({ orgId, name, since }: Awaited<ReturnType<typeof domainsWithoutMx>>[number], now: number) {
  return {
    cause: 'mx_missing' as const,
    severity: elapsed(since, now) < setUpMs ? ('watch' as const) : ('act' as const),
    subject: name,
    orgId,
    since,
    figure: 'its mail does not come here',
    advice: 'Publish its MX record, or turn off receiving for the domain.',
    path: `/o/${orgId}/domains/${name}`,
  };
}

/** A missing source address, destinations that something is wrong with, and other mail that has waited for long. */
async function waitingNeeds({ db, org, now }: OwnerParts): Promise<NeedDraft[]> {
  const waiting = await longestWaiting(db, org.id);
  if (waiting.length === 0) return [];
  const statuses = await readDestinationStatuses(db, now);
  const routes = await routesOf(
    db,
    waiting.map(({ domain }) => domain),
  );
  const conditionOf = conditionsAt(statuses, now);
  const others: WaitingMail[] = [];
  const troubles = new Map<string, NeedDraft & { domains: string[] }>();
  const pathTo = (domains: string[]) => {
    const to = domains.slice(0, maxDomains).map((domain) => `@${domain}`);
    return `/o/${org.id}/emails?${new URLSearchParams({ status: 'waiting', to: to.join(' ') })}`;
  };
  for (const mail of waiting) {
    const condition = conditionOf({
      ...named(routes.get(mail.domain) ?? mail.domain),
      domains: [mail.domain],
    });
    const need = destinationNeed(condition, now);
    // `no_way_out` is one entry for all destinations.
    if (!need) {
      others.push(mail);
      continue;
    }
    const domains = [...(troubles.get(need.subject)?.domains ?? []), mail.domain];
    troubles.set(need.subject, { ...need, domains, path: pathTo(domains) });
  }
  const old = others.filter(({ oldestAt }) => oldestAt < now - longWaitMs);
  const needs: NeedDraft[] = [...troubles.values()]
    .slice(0, maxDestinations)
    .map(({ domains: _, ...need }) => need);
  for (const { domain, oldestAt } of old.slice(0, maxOfAKind))
    needs.push({
      cause: 'deferred',
      severity: 'watch',
      subject: domain,
      since: oldestAt,
      figure: `mail has waited for ${span(now - oldestAt)}`,
      advice: `The receiving server defers it. ${isRetried}`,
      path: pathTo([domain]),
    });
  const pool = org.pool ?? defaultPool;
  if (statuses.missingPools.includes(pool))
    needs.push({
      cause: 'no_source',
      severity: 'act',
      subject: pool,
      since: null,
      figure: 'mail waits for a source address',
      advice: 'No running server has a source address of this IP pool. Ask the operator of this server.',
      path: `/o/${org.id}/emails?status=waiting`,
    });
  return needs;
}

const isRetried = 'Postern retries until the mail expires.';

/** Null if nothing is wrong there. */
function destinationNeed(
  { cause, destination, since, severity, order, blockedUntil }: Condition,
  now: number,
) {
  const isSuspended = cause === 'suspended';
  const does = causes[cause].predicate;
  if (!isSuspended && (severity === 'ok' || does === null)) return null;
  const next = blockedUntil === null ? '' : `; the next attempt is ${dueIn(blockedUntil - now)}`;
  const hasNoWay = cause === 'no_way_out';
  const what = hasNoWay ? 'This server cannot reach other mail servers' : does;
  return {
    cause,
    severity: 'watch' as const,
    subject: order?.destination ?? (hasNoWay ? thisServer : destination),
    since,
    figure: (isSuspended ? `by the operator: ${order!.reason}` : what) + next,
    advice: isRetried,
  };
}
