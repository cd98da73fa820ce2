/** The doctor's part: bulk senders that break a provider's rules, and feedback loops that report nothing. */
import { dayOf } from '#accounts/limits.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { readMailboxDays } from '#mail/record/rows/mailbox-days.ts';
import { listReturned } from '#mail/returned/rows/returned-mails.ts';
import { type NewMail, readNewMails } from '#operate/doctor/checks/bulk-mail.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import { type Check, type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { domainOf } from '#platform/values/address.ts';
import { providerTitles } from '#platform/values/mailbox-provider.ts';
import { type Compliance, complianceOf, registeredDomains } from './compliance.ts';
import { feedbackLoops, lastReports } from './feedback-loops.ts';
import { countedDays, standingsOf, type Volume, volumesOf } from './volumes.ts';

const unknown = skipped('not known: the database cannot be read');

/** One for each registered domain, with the mail of all its organizations. */
export function senderRuleChecks(domains: DomainRecord[], context: DoctorContext): Check[] {
  let newest: Promise<NewMail[]> | undefined;
  const newMails = (db: Db) => {
    newest ??= readNewMails(db);
    return newest;
  };
  return [...registeredDomains(domains)].map(([domain, own]) => ({
    check: 'sender rules',
    subject: domain,
    async run() {
      const db = await context.openDb().catch(() => null);
      if (!db) return unknown;
      const orgIds = [...new Set(own.map(({ orgId }) => orgId))];
      const days = await readMailboxDays(db, { orgIds, now: context.now(), days: countedDays });
      const volumes = volumesOf(days, domain);
      if (Object.values(standingsOf(volumes)).every((one) => one === 'small'))
        return ok(`not a bulk sender: at most ${volumes.map(volumeText).join(', ')} in a day`);
      return judged(await complianceOf(domain, own, { days, mails: await newMails(db), context }));
    },
  }));
}

const volumeText = ({ provider, most }: Volume) => `${most} to ${providerTitles[provider]}`;

function judged({ volumes, standings, demands }: Compliance): FindingDraft {
  const large = volumes.filter(({ provider }) => standings[provider] !== 'small');
  const who = `bulk sender: ${large.map((one) => `${volumeText(one)} on ${dayOf(one.day!)}`).join(', ')}`;
  const unmet = demands.filter(
    ({ asking, verdict }) => asking.length > 0 && (verdict === 'failure' || verdict === 'warning'),
  );
  if (unmet.length === 0) return ok(`${who}; all demands that can be checked here are met`);
  const found = `${who}; not met: ${unmet.map((one) => `${one.title} (${one.found})`).join('; ')}`;
  const advice = [...new Set(unmet.flatMap((one) => one.advice ?? []))].join('; ');
  const isRefused = large.some(({ provider }) => standings[provider] === 'bulk');
  return (isRefused ? failure : warning)(
    found,
    advice,
    unmet.flatMap(({ records }) => records),
  );
}

/** The newest complaints that are kept. */
const maxComplaints = 200;

export async function checkFeedbackLoops({ openDb, config }: DoctorContext): Promise<FindingDraft> {
  const db = await openDb().catch(() => null);
  const mails = db && (await listReturned(db, { kind: 'complaint', limit: maxComplaints }).catch(() => null));
  if (!mails) return unknown;
  const last = lastReports(
    mails.flatMap(({ emailTo, at }) => (emailTo === null ? [] : [{ name: domainOf(emailTo) ?? '', at }])),
  );
  const loops = Object.entries(feedbackLoops).map(([name, { of, url }]) => {
    const at = last[name as keyof typeof last];
    return `${of}: ${at === null ? `none, register at ${url}` : dayOf(at)}`;
  });
  return ok(`last reports to complaints@${config.returnPathDomain}: ${loops.join('; ')}`);
}
