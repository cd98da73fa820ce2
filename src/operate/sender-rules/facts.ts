/** Our state on each demand (rules.ts), for the sender domains below one registered domain. The doctor's checks find it. */
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import { returnPathInUse } from '#accounts/rows/return-paths.ts';
import { judgeBulkMail, type NewMail } from '#operate/doctor/checks/bulk-mail.ts';
import { checkPtr } from '#operate/doctor/checks/host-names.ts';
import { dkimChecks, recordChecks } from '#operate/doctor/checks/sender-domain.ts';
import { checkSpf } from '#operate/doctor/checks/spf.ts';
import type { DoctorContext } from '#operate/doctor/doctor-context.ts';
import type { Dns } from '#operate/doctor/doctor-dns.ts';
import { type Check, type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import { findingOf } from '#operate/doctor/run-check.ts';
import { complaintRate } from '#operate/status/reputation.ts';
import type { RuleName } from './rules.ts';
import type { Volume } from './volumes.ts';

type Facts = Record<RuleName, FindingDraft>;

export interface FactsParts {
  context: Pick<DoctorContext, 'dns' | 'config' | 'senders'>;
  /** The newest ones, of this registered domain. */
  mails: NewMail[];
  volumes: Volume[];
}

/** `domains`: at least one. */
export async function factsOf(
  domains: DomainRecord[],
  { context, mails, volumes }: FactsParts,
): Promise<Facts> {
  const { dns } = context;
  const senders = await context.senders;
  const ofEach = (checksOf: (domain: DomainRecord) => Pick<Check, 'run'>[]) =>
    worstOf(domains.flatMap((domain) => checksOf(domain).map((check) => ({ ...check, of: domain.name }))));
  const [spf, dkim, dmarc, ptr, from] = await Promise.all([
    worstOf([{ of: '', run: () => checkSpf(context) }]),
    ofEach((domain) => dkimChecks(domain, context)),
    ofEach((domain) => recordChecks(domain, context).filter(({ check }) => check === 'DMARC')),
    worstOf(senders.map((sender) => ({ of: sender.address, run: () => checkPtr(dns, sender) }))),
    ofEach(({ name }) => [{ run: () => checkReplies(dns, name) }]),
  ]);
  return {
    spf: withAlignment(spf, domains),
    dkim,
    dmarc,
    ptr,
    tls: ok('every connection is encrypted if the receiving host offers it, as all of these do'),
    oneClick: judgeBulkMail(mails),
    complaints: judgeComplaints(volumes),
    from,
  };
}

const severities = ['ok', 'skipped', 'warning', 'failure'] as const;

interface NamedCheck extends Pick<Check, 'run'> {
  /** Said if there are several; may be empty. */
  of: string;
}

async function worstOf(checks: NamedCheck[]): Promise<FindingDraft> {
  const found = await Promise.all(
    checks.map(async (check) => ({ of: check.of, finding: await findingOf(check) })),
  );
  const severityOf = ({ finding }: (typeof found)[number]) => severities.indexOf(finding.verdict);
  const [worst] = found.toSorted((one, other) => severityOf(other) - severityOf(one));
  if (!worst) return skipped('not known');
  const isNamed = found.length > 1 && worst.finding.verdict !== 'ok';
  return isNamed ? { ...worst.finding, found: `${worst.of}: ${worst.finding.found}` } : worst.finding;
}

/** SPF passes for the server's return path; a return path of the domain's own makes it count for DMARC, which DKIM does anyhow. */
function withAlignment(spf: FindingDraft, domains: DomainRecord[]): FindingDraft {
  const without = domains.filter((domain) => returnPathInUse(domain) === null);
  if (spf.verdict !== 'ok' || without.length === 0) return spf;
  const [{ name }] = without as [DomainRecord];
  return {
    ...spf,
    found: `${spf.found}; for ${name}, DMARC passes by DKIM alone`,
    advice: 'publish the return path record of the domain, so that DMARC passes twice',
  };
}

/** A domain without MX record takes mail at its address (RFC 5321 section 5.1). */
async function checkReplies(dns: Dns, name: string): Promise<FindingDraft> {
  const records = await dns.records<{ exchange: string }>(name, 'MX');
  const takes = records.filter(({ exchange }) => exchange !== '' && exchange !== '.');
  if (takes.length > 0) return ok(`mail to ${name} goes to ${takes[0]!.exchange}`);
  if (records.length === 0 && (await dns.addresses(name)).length > 0)
    return ok(`mail to ${name} goes to its address`);
  return warning(
    `${name} takes no mail: replies bounce`,
    'publish an MX record for it, or receive its mail here; a Reply-To helps people meanwhile',
  );
}

const withoutGmail = "Gmail's are not in it: see Google's Postmaster Tools";

/** Gmail reports no complaints, so its mail is not in the rate. */
function judgeComplaints(volumes: Volume[]): FindingDraft {
  const reporting = volumes.filter(({ provider }) => provider !== 'gmail');
  const delivered = reporting.reduce((sum, one) => sum + one.delivered, 0);
  const complained = reporting.reduce((sum, one) => sum + one.complained, 0);
  const { tone } = complaintRate({ complained, delivered });
  const found = `${complained} of ${delivered} mails to Yahoo and Outlook.com in 30 days; ${withoutGmail}`;
  if (tone === 'bad' || tone === 'warn') {
    const judge = tone === 'bad' ? failure : warning;
    return judge(found, 'find out what these people were sent and whether they asked for it');
  }
  return ok(found);
}
