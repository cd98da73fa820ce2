/** Organizations whose mail bounces or is complained about too often, domains that are no longer verified, failing webhooks. */

import { pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import { type AutoPause, listPauses, pauseTitle } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { hourMs } from '#mail/record/rows/statistics.ts';
import {
  blockedBounces,
  countsSince,
  type FullStore,
  fullStores,
  type OrganizationCounts,
  type TroubledDomain,
  type TroubledWebhook,
  troubledDomains,
  troubledWebhooks,
} from '#operate/status/rows/server-attention-rows.ts';
import { elapsed } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import type { Need } from './need.ts';
import { bounceRate, complaintRate, type Rate } from './reputation.ts';

const maxOfAKind = 20;
/** The current hour and the day before it. */
const rateHours = 24;

/** `storeBytes`: what an organization's received mail may take. */
export async function readOrganizationNeeds(db: Db, now: number, storeBytes: number): Promise<Need[]> {
  const since = now - (now % hourMs) - rateHours * hourMs;
  const counts = await countsSince(db, since);
  const rates = counts.flatMap((some) =>
    rateNeeds(some, '24 hours').map((need) => ({
      ...need,
      orgId: some.orgId,
      advice: `${need.advice} If it lasts, the operator should pause the organization.`,
    })),
  );
  return [
    ...(await Promise.all(rates.slice(0, maxOfAKind).map((need) => withBlocklist(db, need, since)))),
    ...(await listPauses(db, maxOfAKind)).map(pauseNeed),
    ...(await troubledDomains(db, maxOfAKind)).map(domainNeed),
    ...(await troubledWebhooks(db, maxOfAKind)).map((one) => webhookNeed(one, now)),
    ...(await storeNeeds(db, storeBytes, maxOfAKind)),
  ];
}

/** A large mail has no room before the store is full. */
const fullShare = 0.95;

export async function storeNeeds(db: Db, storeBytes: number, limit: number, orgId?: string): Promise<Need[]> {
  const full = await fullStores(db, Math.floor(storeBytes * fullShare), limit, orgId);
  return full.map((one) => storeNeed(one, storeBytes));
}

function storeNeed({ orgId, orgName, bytes }: FullStore, storeBytes: number): Need {
  return {
    cause: 'store_full',
    severity: 'act',
    subject: orgName,
    orgId,
    since: null,
    figure: `received mail takes ${Math.round((bytes / storeBytes) * 100)}% of POSTERN_RECEIVED_STORE`,
    advice:
      'More is deferred until the oldest is deleted. The operator can raise the setting, or lower POSTERN_KEEP_RECEIVED.',
    command: `postern received list --org ${shellWord(orgName)}`,
    path: `/o/${orgId}/received`,
  };
}

/** `period`: that of the counts. */
export function rateNeeds(counts: OrganizationCounts, period: '24 hours' | '7 days'): Need[] {
  const { orgId, orgName, sent, delivered, bounced, complained } = counts;
  const within = period === '7 days' ? '7d' : '24h';
  return [
    ...rateNeed(complaintRate(counts), {
      cause: 'complaint_rate',
      subject: orgName,
      figure: `${complained} of ${delivered} delivered in ${period}`,
      advice: 'Find out what these people were sent and whether they asked for it.',
      command: 'postern returned list --kind complaint',
      path: `/o/${orgId}/emails?${new URLSearchParams({ status: 'complained', within })}`,
    }),
    ...rateNeed(bounceRate(counts), {
      cause: 'bounce_rate',
      subject: orgName,
      figure: `${bounced} of ${sent} sent in ${period}`,
      advice: 'See which addresses bounce and where they come from.',
      command: `postern email list --org ${shellWord(orgName)} --status bounced --since 1d`,
      path: `/o/${orgId}/emails?${new URLSearchParams({ status: 'bounced', within })}`,
    }),
  ];
}

/** Addresses are not to blame for bounces that are refusals of this server. */
async function withBlocklist(db: Db, need: Need & { orgId: string }, since: number): Promise<Need> {
  if (need.cause !== 'bounce_rate') return need;
  const { blocked, of } = await blockedBounces(db, need.orgId, since);
  if (blocked === 0) return need;
  const which = `${blocked} of the last ${of} bounces are refusals because of a blocklist or our reputation`;
  const figure = `${need.figure}; ${which}`;
  if (blocked * 2 < of) return { ...need, figure };
  const advice = 'The addresses are not the cause: find out who lists this server, and be removed.';
  return { ...need, figure, advice, command: 'postern doctor' };
}

function rateNeed({ share, tone, bad }: Rate, need: Omit<Need, 'severity' | 'since'>): Need[] {
  if (tone !== 'bad' && tone !== 'warn') return [];
  const percent = (of: number) => `${Number((of * 100).toFixed(of < 0.01 ? 2 : 1))}%`;
  const limit = `From ${percent(bad)} on, mailbox providers throttle or refuse mail.`;
  return [
    {
      ...need,
      severity: tone === 'bad' ? 'act' : 'watch',
      since: null,
      figure: `${percent(share!)}: ${need.figure}`,
      advice: `${limit} ${need.advice}`,
    },
  ];
}

export function pauseNeed(pause: AutoPause): Need {
  const { id, orgId, orgName, state, rule, since, figures, mails } = pause;
  const isHeld = state === 'held';
  const { label, rate } = pauseRules[rule];
  const happened = rate === null ? label : `${figures.count} ${label} of ${figures.of} ${rate.of}`;
  return {
    cause: 'auto_pause',
    severity: 'act',
    subject: `${pauseTitle(pause)} of ${orgName}`,
    orgId,
    since,
    figure: `${isHeld ? 'its mail is held' : 'its mail goes on'}: ${happened}`,
    reply: mails[0]?.reply ?? null,
    advice: isHeld
      ? 'New mail is accepted and held, too. See which mails these are, stop the cause, then release it.'
      : 'See which mails these are, and stop the cause before mailbox providers refuse all mail.',
    command: `postern pause show ${id}`,
    path: `/o/${orgId}/pauses`,
  };
}

export function domainNeed({ orgId, orgName, name, failingSince, isRefused }: TroubledDomain): Need {
  // If the domain was verified, mail of it may be on its way.
  const isNew = isRefused && failingSince === null;
  return {
    cause: 'domain_unverified',
    severity: isNew ? 'watch' : 'act',
    subject: name,
    orgId,
    since: failingSince,
    figure: isRefused ? 'its mail is refused here' : 'its mail is sent without a valid signature',
    advice: isNew
      ? 'Publish its DNS records, which Postern looks for regularly.'
      : `The DKIM record is missing or wrong. Publish it again; ${orgName} owns the domain.`,
    command: `postern domain verify ${shellWord(name)} --org ${shellWord(orgName)}`,
    path: `/o/${orgId}/domains/${name}`,
  };
}

const longMs = hourMs;

export function webhookNeed(
  { id, orgId, url, isDisabled, reason, failingSince, lastError }: TroubledWebhook,
  now: number,
): Need {
  const lasts = failingSince === null ? 0 : elapsed(failingSince, now);
  return {
    cause: 'webhook_failing',
    severity: isDisabled || lasts >= longMs ? 'act' : 'watch',
    subject: url,
    orgId,
    since: failingSince,
    figure: isDisabled ? 'disabled' : 'failing',
    reply: reason ?? lastError,
    advice: isDisabled
      ? 'Events are kept for it. Repair the endpoint, then enable it.'
      : 'Events are posted again for three days. See what the endpoint answers.',
    command: isDisabled ? `postern webhook enable ${id}` : `postern webhook attempts ${id}`,
    path: `/o/${orgId}/webhooks/${id}`,
  };
}
