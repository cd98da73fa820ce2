/** Organizations whose mail bounces or is complained about too often, domains that are no longer verified, failing webhooks. */
import {
  blockedBounces,
  countsSince,
  type FailingWebhook,
  failingWebhooks,
  type LapsedDomain,
  lapsedDomains,
  type OrganizationCounts,
} from '../../db/accounts/server-attention-rows.ts';
import type { Db } from '../../db/engine/open.ts';
import { hourMs } from '../../db/events/statistics.ts';
import { shellWord } from '../condition/shell-word.ts';
import type { Need } from './need.ts';
import { bounceRate, complaintRate, type Rate } from './reputation.ts';

const maxOfAKind = 20;
/** The current hour and the day before it. */
const rateHours = 24;

export async function readOrganizationNeeds(db: Db, now: number): Promise<Need[]> {
  const since = now - (now % hourMs) - rateHours * hourMs;
  const counts = await countsSince(db, since);
  const rates = counts.flatMap(rateNeeds).slice(0, maxOfAKind);
  return [
    ...(await Promise.all(rates.map((need) => withBlocklist(db, need, since)))),
    ...(await lapsedDomains(db, maxOfAKind)).map(domainNeed),
    ...(await failingWebhooks(db, maxOfAKind)).map((one) => webhookNeed(one, now)),
  ];
}

function rateNeeds(counts: OrganizationCounts): RateNeed[] {
  const { orgId, orgName, sent, delivered, bounced, complained } = counts;
  const org = shellWord(orgName);
  return [
    ...rateNeed(complaintRate(counts), counts, {
      cause: 'complaint_rate',
      figure: `${complained} of ${delivered} delivered in 24 h`,
      advice:
        'Find out what these people were sent and whether they asked for it; pause the organization if it lasts.',
      command: 'postern inbound list --kind complaint',
      path: `/o/${orgId}/emails?status=complained`,
    }),
    ...rateNeed(bounceRate(counts), counts, {
      cause: 'bounce_rate',
      figure: `${bounced} of ${sent} sent in 24 h`,
      advice: 'See which addresses bounce and where they come from; pause the organization if it lasts.',
      command: `postern email list --org ${org} --status bounced --since 1d`,
      path: `/o/${orgId}/emails?status=bounced`,
    }),
  ];
}

/** Addresses are not to blame for bounces that are refusals of this server. */
async function withBlocklist(db: Db, { orgId, ...need }: RateNeed, since: number): Promise<Need> {
  if (need.cause !== 'bounce_rate') return need;
  const { blocked, of } = await blockedBounces(db, orgId, since);
  if (blocked === 0) return need;
  const which = `${blocked} of the last ${of} bounces are refusals because of a blocklist or our reputation`;
  const figure = `${need.figure}; ${which}`;
  if (blocked * 2 < of) return { ...need, figure };
  const advice = 'The addresses are not the cause: find out who lists this server, and be removed.';
  return { ...need, figure, advice, command: 'postern doctor' };
}

type RateNeed = Need & { orgId: string };

function rateNeed(
  { share, tone, bad }: Rate,
  { orgId, orgName }: OrganizationCounts,
  need: Pick<Need, 'cause' | 'figure' | 'advice' | 'command' | 'path'>,
): RateNeed[] {
  if (tone !== 'bad' && tone !== 'warn') return [];
  const percent = (of: number) => `${Number((of * 100).toFixed(of < 0.01 ? 2 : 1))} %`;
  const limit = `From ${percent(bad)} on, mailbox providers throttle or refuse mail.`;
  return [
    {
      ...need,
      orgId,
      severity: tone === 'bad' ? 'act' : 'watch',
      subject: orgName,
      since: null,
      figure: `${percent(share!)}: ${need.figure}`,
      reply: null,
      advice: `${limit} ${need.advice}`,
      traffic: null,
    },
  ];
}

function domainNeed({ orgId, orgName, name, failingSince, isRefused }: LapsedDomain): Need {
  return {
    cause: 'domain_unverified',
    severity: 'act',
    subject: name,
    since: failingSince,
    figure: isRefused ? 'its mail is refused here' : 'its mail is sent without a valid signature',
    reply: null,
    advice: `The DKIM record is missing or wrong. Publish it again; ${orgName} owns the domain.`,
    command: `postern domain verify ${shellWord(name)} --org ${shellWord(orgName)}`,
    path: `/o/${orgId}/domains/${name}`,
    traffic: null,
  };
}

const longMs = hourMs;

function webhookNeed(
  { id, orgId, url, isDisabled, reason, failingSince }: FailingWebhook,
  now: number,
): Need {
  const lasts = failingSince === null ? null : now - failingSince;
  return {
    cause: 'webhook_failing',
    severity: isDisabled || (lasts ?? 0) >= longMs ? 'act' : 'watch',
    subject: url,
    since: failingSince,
    figure: isDisabled ? 'disabled' : 'failing',
    reply: reason,
    advice: isDisabled
      ? 'Events are kept for it. Repair the endpoint, then enable it.'
      : 'Events are posted again for three days. See what the endpoint answers.',
    command: isDisabled ? `postern webhook enable ${id}` : `postern webhook attempts ${id}`,
    path: `/o/${orgId}/webhooks/${id}`,
    traffic: null,
  };
}
