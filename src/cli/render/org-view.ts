/** An organization with its quota and limits. */

import { quotaState } from '#accounts/rows/credit-ledger.ts';
import type { Organization } from '#accounts/rows/organizations.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { iso } from '#platform/base/clock.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';
import type { Cell } from './output.ts';

export function printOrganization({ out, now }: CommandContext, org: Organization): void {
  out.print(organizationDocument(org, now()), { fields: organizationFields(org, now()) });
}

export function organizationDocument(org: Organization, now: number) {
  return {
    id: org.id,
    name: org.name,
    quota: quotaDocument(org, now),
    wallet: org.wallet,
    limits: {
      perSecond: orUnlimited(org.requestsPerSecond),
      perDay: orUnlimited(org.requestsPerDay),
      emailsPerDay: orUnlimited(org.emailsPerDay),
    },
    tls: org.tls,
    pool: org.pool,
    autoPause: org.autoPause ?? 'default',
    twoFactor: org.requiresSecondFactor ? 'required' : 'optional',
    paused: org.pause && { since: iso(org.pause.since), reason: org.pause.reason },
    createdAt: iso(org.createdAt),
  };
}

function organizationFields(org: Organization, now: number): Record<string, Cell> {
  return {
    id: org.id,
    name: org.name,
    ...quotaFields(org, now),
    'requests a second': orUnlimited(org.requestsPerSecond),
    'requests a day': orUnlimited(org.requestsPerDay),
    'emails a day': orUnlimited(org.emailsPerDay),
    TLS: org.tls,
    'IP pool': org.pool ?? `${defaultPool} (not assigned)`,
    'auto-pause': org.autoPause ?? 'default (POSTERN_AUTO_PAUSE)',
    'two-factor': org.requiresSecondFactor ? 'required' : 'optional',
    created: { time: org.createdAt, past: true },
    ...(org.pause && { paused: { time: org.pause.since, past: true }, reason: org.pause.reason }),
  };
}

export function quotaDocument(org: Organization, now: number) {
  const { limit, used, remaining, renewsAt } = quotaState(org, now);
  return { limit: orUnlimited(limit), used, remaining: orUnlimited(remaining), renewsAt: iso(renewsAt) };
}

export function quotaFields(org: Organization, now: number): Record<string, Cell> {
  const { limit, used, remaining, renewsAt } = quotaState(org, now);
  return {
    quota: orUnlimited(limit),
    used,
    left: orUnlimited(remaining),
    renews: { time: renewsAt },
    wallet: org.wallet,
  };
}

export function orUnlimited(value: number | null): number | 'unlimited' {
  return value ?? 'unlimited';
}
