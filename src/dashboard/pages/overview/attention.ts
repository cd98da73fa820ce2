/** What stands in the way of an organization's mail, the worst first, each with where to do something about it. */
import { balanceOf, quotaState } from '../../../db/accept/credit-ledger.ts';
import type { TroubledWebhook, WaitingMail } from '../../../db/accounts/attention-rows.ts';
import type { Organization } from '../../../db/accounts/organizations.ts';
import type { DestinationStatuses } from '../../../db/queue/destination-status-rows.ts';
import { defaultPool } from '../../../mail/ip-pool.ts';
import { disabledByOwner } from '../../../webhooks/endpoints.ts';
import { count, percent, relative, span } from '../../number-format.ts';
import type { Rate } from './reputation-figures.ts';

export interface AttentionItem {
  tone: 'bad' | 'warn';
  title: string;
  text: string;
  /** Below the organization. */
  path: string;
}

export interface AttentionFacts {
  now: number;
  org: Organization;
  /** Of the quota: what is left is low below it. */
  lowShare: number;
  domains: string[];
  webhooks: TroubledWebhook[];
  waiting: WaitingMail[];
  statuses: DestinationStatuses;
  /** Which destination serves a domain. */
  routes: Map<string, string>;
  bounces: Rate;
  complaints: Rate;
}

/** Mail that a host defers comes through within the hour, mostly. */
const longWaitMs = 3_600_000;

export function attentionItems(facts: AttentionFacts): AttentionItem[] {
  const all = [
    ...creditItems(facts),
    ...rateItems(facts),
    ...sourceItems(facts),
    ...destinationItems(facts),
    ...domainItems(facts),
    ...webhookItems(facts),
  ];
  return [...all.filter(({ tone }) => tone === 'bad'), ...all.filter(({ tone }) => tone === 'warn')];
}

function creditItems({ org, lowShare, now }: AttentionFacts): AttentionItem[] {
  const { limit, remaining, renewsAt } = quotaState(org, now);
  if (limit === null || remaining === null) return [];
  const path = '/credits';
  const renews = limit > 0 ? ` The quota renews ${relative(renewsAt, now)}.` : '';
  const isSpent = balanceOf({ ...org, quotaUsed: limit - remaining }) === 0;
  if (isSpent)
    return [
      {
        tone: 'bad',
        title: 'No credits left',
        text: `Sends are refused until there are more.${renews}`,
        path,
      },
    ];
  if (limit === 0 || remaining > limit * lowShare) return [];
  const left = `${count(remaining)} of ${count(limit)} are left, and ${count(org.wallet)} in the wallet.`;
  return [{ tone: 'warn', title: 'Credits are low', text: `${left}${renews}`, path }];
}

function rateItems({ bounces, complaints }: AttentionFacts): AttentionItem[] {
  const itemsFor = (
    name: string,
    { share, tone, good, bad }: Rate,
    advice: string,
    path: string,
  ): AttentionItem[] =>
    tone === 'bad' || tone === 'warn'
      ? [
          {
            ...{ tone, path },
            title: `${name} are ${tone === 'bad' ? 'far too many' : 'too many'}: ${percent(share!)} in 7 days`,
            text: `Mailbox providers want less than ${percent(good)}, and hold mail back from ${percent(bad)} on. ${advice}`,
          },
        ]
      : [];
  return [
    ...itemsFor(
      'Bounces',
      bounces,
      'See which addresses bounce, and where they came from.',
      '/emails?status=bounced',
    ),
    ...itemsFor(
      'Complaints',
      complaints,
      'Write only to those who asked for it.',
      '/emails?status=complained',
    ),
  ];
}

/** That is the operator's to mend. */
function sourceItems({ org, waiting, statuses }: AttentionFacts): AttentionItem[] {
  const isMissing = statuses.missingPools.includes(org.pool ?? defaultPool);
  if (!isMissing || waiting.length === 0) return [];
  const text =
    'No running server has an address that this organization’s mail is to leave from; the operator can mend that.';
  return [{ tone: 'bad', title: 'Mail waits for a source address', text, path: '/emails?status=queued' }];
}

/** Of the mail that waits: where nothing is sent now, and what has waited for long otherwise. */
function destinationItems(facts: AttentionFacts): AttentionItem[] {
  const { waiting, statuses, now } = facts;
  const path = '/emails?status=deferred';
  const stopped = new Map<string, AttentionItem>();
  const others: WaitingMail[] = [];
  for (const mail of waiting) {
    const destination = facts.routes.get(mail.domain) ?? mail.domain;
    const suspension = statuses.suspensions.find((one) =>
      [destination, mail.domain].includes(one.destination),
    );
    const circuit = statuses.states.get(destination)?.circuit;
    if (suspension) {
      const text = `The operator suspended it: ${suspension.reason}. It goes on ${relative(suspension.until, now)}.`;
      stopped.set(suspension.destination, {
        tone: 'warn',
        title: `Mail for ${suspension.destination} is held up`,
        text,
        path,
      });
    } else if (circuit) {
      const text = `Nobody answers there: ${circuit.reason}. That began ${relative(circuit.since, now)}; it is tried again ${relative(circuit.nextProbeAt, now)}.`;
      stopped.set(destination, { tone: 'warn', title: `${destination} cannot be reached`, text, path });
    } else others.push(mail);
  }
  const [oldest] = others;
  const isLong = oldest && oldest.oldestAt < now - longWaitMs;
  return [...stopped.values()].slice(0, maxOfAKind).concat(
    isLong
      ? {
          tone: 'warn',
          title: `Mail for ${oldest.domain} has waited for ${span(now - oldest.oldestAt)}`,
          text: 'Its host puts it off; it is tried again and again until it is too old.',
          path,
        }
      : [],
  );
}

export const maxOfAKind = 3;

function domainItems({ domains }: AttentionFacts): AttentionItem[] {
  return domains.map((name) => ({
    ...{ tone: 'warn', title: `${name} is not verified`, path: `/domains/${name}` },
    text: 'Nothing can be sent from it until its DNS records are found.',
  }));
}

function webhookItems({ webhooks, now }: AttentionFacts): AttentionItem[] {
  const failing = webhooks.filter(({ reason }) => reason !== disabledByOwner);
  return failing.map(({ id, url, isDisabled, reason, failingSince }) => ({
    tone: isDisabled ? 'bad' : 'warn',
    title: isDisabled ? 'A webhook is disabled' : `A webhook ${failureOf(failingSince, now)}`,
    text: `${url}${reason ? `: ${reason}` : ''}`,
    path: `/webhooks/${id}`,
  }));
}

/** "For 0 ms" would say no more than that it has only just begun. */
function failureOf(since: number | null, now: number): string {
  if (since === null) return 'has failed for a while';
  return now - since < 60_000 ? 'has just begun to fail' : `has failed for ${span(now - since)}`;
}
