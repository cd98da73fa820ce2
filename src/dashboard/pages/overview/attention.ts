/** Problems that affect an organization's mail, worst first, each with the page where to act on it. */
import { balanceOf, quotaState } from '../../../db/accept/credit-ledger.ts';
import type { TroubledWebhook, WaitingMail } from '../../../db/accounts/attention-rows.ts';
import type { Organization } from '../../../db/accounts/organizations.ts';
import type { DestinationStatuses } from '../../../db/queue/destination-status-rows.ts';
import { defaultPool } from '../../../mail/ip-pool.ts';
import { causes } from '../../../operate/condition/causes.ts';
import { type Condition, conditionsAt, named } from '../../../operate/condition/condition.ts';
import type { Rate } from '../../../operate/status/reputation.ts';
import { disabledByOwner } from '../../../webhooks/endpoints.ts';
import { count, percent, relative, span } from '../../number-format.ts';

export interface AttentionItem {
  tone: 'bad' | 'warn';
  title: string;
  text: string;
  /** Relative to the organization's pages. */
  path: string;
}

export interface AttentionInput {
  now: number;
  org: Organization;
  /** Credits are low if less than this share of the quota is left. */
  lowShare: number;
  domains: string[];
  /** Verified, but their DKIM record is missing or wrong. */
  failingDomains: string[];
  webhooks: TroubledWebhook[];
  waiting: WaitingMail[];
  statuses: DestinationStatuses;
  /** Recipient domain to destination. */
  routes: Map<string, string>;
  bounces: Rate;
  complaints: Rate;
}

/** Most deferred mail is delivered within an hour. */
const longWaitMs = 3_600_000;

export function attentionItems(input: AttentionInput): AttentionItem[] {
  const all = [
    ...creditItems(input),
    ...rateItems(input),
    ...sourceItems(input),
    ...destinationItems(input),
    ...domainItems(input),
    ...webhookItems(input),
  ];
  return [...all.filter(({ tone }) => tone === 'bad'), ...all.filter(({ tone }) => tone === 'warn')];
}

function creditItems({ org, lowShare, now }: AttentionInput): AttentionItem[] {
  const { limit, remaining, renewsAt } = quotaState(org, now);
  if (limit === null || remaining === null) return [];
  const path = '/credits';
  const renews = limit > 0 ? ` The quota renews ${relative(renewsAt, now)}.` : '';
  const isSpent = balanceOf({ ...org, quotaUsed: limit - remaining }) === 0;
  const refused = `Sends are refused until credits are added.${renews}`;
  if (isSpent) return [{ tone: 'bad', title: 'No credits left', text: refused, path }];
  if (limit === 0 || remaining > limit * lowShare) return [];
  const left = `${count(remaining)} of ${count(limit)} credits are left in the quota, and ${count(org.wallet)} in the wallet.`;
  return [{ tone: 'warn', title: 'Credits are low', text: `${left}${renews}`, path }];
}

function rateItems({ bounces, complaints }: AttentionInput): AttentionItem[] {
  const rates = [
    { name: 'bounce', ...bounces, advice: 'Check which addresses bounce and where you got them.' },
    { name: 'complaint', ...complaints, advice: 'Send only to people who asked for your mail.' },
  ];
  return rates.flatMap(({ name, share, tone, good, bad, advice }) => {
    if (tone !== 'bad' && tone !== 'warn') return [];
    const level = tone === 'bad' ? 'too high' : 'high';
    const title = `The ${name} rate is ${level}: ${percent(share!)} in the last 7 days`;
    const text = `Keep it below ${percent(good)}. From ${percent(bad)} on, mailbox providers throttle or reject your mail. ${advice}`;
    return [{ tone, title, text, path: `/emails?status=${name === 'bounce' ? 'bounced' : 'complained'}` }];
  });
}

/** Only the operator can fix a missing IP pool. */
function sourceItems({ org, waiting, statuses }: AttentionInput): AttentionItem[] {
  const isMissing = statuses.missingPools.includes(org.pool ?? defaultPool);
  if (!isMissing || waiting.length === 0) return [];
  const text =
    'No running server has a source address of this organization’s IP pool. Ask the operator of this server.';
  return [
    { tone: 'bad', title: 'Mail is waiting for a source address', text, path: '/emails?status=queued' },
  ];
}

/** Destinations that something is wrong with (operate/status/), and the oldest other mail if it has waited for long. */
function destinationItems(input: AttentionInput): AttentionItem[] {
  const { waiting, statuses, now } = input;
  const path = '/emails?status=deferred';
  const conditionOf = conditionsAt(statuses, now);
  const found = new Map<string, AttentionItem>();
  const others: WaitingMail[] = [];
  for (const mail of waiting) {
    const destination = input.routes.get(mail.domain) ?? mail.domain;
    const condition = conditionOf({ ...named(destination), domains: [mail.domain] });
    const text = textOf(condition, now);
    if (text) found.set(text.title, { tone: 'warn', path, ...text });
    else others.push(mail);
  }
  const [oldest] = others;
  const isLong = oldest && oldest.oldestAt < now - longWaitMs;
  return [...found.values()].slice(0, maxOfAKind).concat(
    isLong
      ? {
          tone: 'warn',
          title: `Mail to ${oldest.domain} has been deferred for ${span(now - oldest.oldestAt)}`,
          text: 'The receiving server defers it. Postern retries until the mail expires.',
          path,
        }
      : [],
  );
}

/** Null if nothing is wrong. Without the reply, which may be about another organization's mail. */
function textOf({ cause, destination, since, severity, order, blockedUntil }: Condition, now: number) {
  if (order?.kind === 'suspend') {
    const { destination: to, reason, until } = order;
    const text = `The operator suspended this destination: ${reason}. Sending resumes ${relative(until!, now)}.`;
    return { title: `Mail to ${to} is suspended`, text };
  }
  const does = causes[cause].is;
  if (severity === 'ok' || does === null) return null;
  const lasts = since === null || now - since < 60_000 ? '' : `For ${span(now - since)}. `;
  const due = (time: number) => (time - now < 60_000 ? 'due now' : relative(time, now));
  const next = blockedUntil === null ? '' : ` The next attempt is ${due(blockedUntil)}.`;
  // One entry for all of them.
  const title =
    cause === 'no_way_out' ? 'This server cannot reach other mail servers' : `${destination} ${does}`;
  return { title, text: `${lasts}Postern retries until the mail expires.${next}` };
}

export const maxOfAKind = 3;

function domainItems({ domains, failingDomains }: AttentionInput): AttentionItem[] {
  const failing = failingDomains.map((name) => ({
    tone: 'bad' as const,
    title: `The DKIM record of ${name} is missing or wrong`,
    path: `/domains/${name}`,
    text: 'Receivers reject mail from this domain or file it as spam. Publish the record that the page of the domain shows.',
  }));
  const pending = domains.map((name) => ({
    tone: 'warn' as const,
    title: `${name} is not verified`,
    path: `/domains/${name}`,
    text: 'You cannot send from this domain until its DNS records are found. Postern looks for them regularly.',
  }));
  return [...failing, ...pending];
}

function webhookItems({ webhooks, now }: AttentionInput): AttentionItem[] {
  const failing = webhooks.filter(({ reason }) => reason !== disabledByOwner);
  return failing.map(({ id, url, isDisabled, reason, failingSince }) => ({
    tone: isDisabled ? 'bad' : 'warn',
    title: isDisabled ? 'A webhook is disabled' : `A webhook ${failureOf(failingSince, now)}`,
    text: `${url}${reason ? `: ${reason}` : ''}`,
    path: `/webhooks/${id}`,
  }));
}

/** A duration under a minute is not worth showing. */
function failureOf(since: number | null, now: number): string {
  if (since === null) return 'is failing';
  return now - since < 60_000 ? 'has just started to fail' : `has been failing for ${span(now - since)}`;
}
