/** Whether the mail of registered domains meets the demands (rules.ts) of the providers whose bulk senders they are. */
import { type DomainRecord, listDomains } from '#accounts/rows/domains-table.ts';
import { type MailboxDay, readComplaintDays, readMailboxDays } from '#mail/record/rows/mailbox-days.ts';
import { type NewMail, readNewMails } from '#operate/doctor/checks/bulk-mail.ts';
import { createDns } from '#operate/doctor/doctor-dns.ts';
import type { FindingDraft } from '#operate/doctor/finding.ts';
import { originsOf, sendingAddressesOf } from '#operate/doctor/sending-addresses.ts';
import { realSurroundings } from '#operate/doctor/surroundings.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import type { MailboxProvider } from '#platform/values/mailbox-provider.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';
import { type FactsParts, factsOf } from './facts.ts';
import { type LastReports, lastReports } from './feedback-loops.ts';
import { askingProviders, demands, type RuleName, type Standings, senderRules } from './rules.ts';
import { countedDays, standingsOf, type Volume, volumesOf } from './volumes.ts';

export interface JudgedDemand extends FindingDraft {
  demand: RuleName;
  title: string;
  /** For the operator to meet. */
  isServers: boolean;
  /** The providers that demand it now. */
  asking: MailboxProvider[];
}

export interface Compliance {
  /** Registered; what is said holds for it and all below it. */
  domain: string;
  volumes: Volume[];
  standings: Standings;
  demands: JudgedDemand[];
}

/** `domains`: those of the organizations below the registered domain; at least one. */
export async function complianceOf(
  domain: string,
  domains: DomainRecord[],
  { days, mails, context }: Pick<FactsParts, 'context'> & { days: MailboxDay[]; mails: NewMail[] },
): Promise<Compliance> {
  const volumes = volumesOf(days, domain);
  const standings = standingsOf(volumes);
  const own = mails.filter((mail) => organizationalDomain(mail.domain) === domain);
  const facts = await factsOf(domains, { context, volumes, mails: own });
  const judged = demands.map((demand): JudgedDemand => {
    const { title, isServers } = senderRules[demand];
    return { demand, title, isServers, asking: askingProviders(demand, standings), ...facts[demand] };
  });
  return { domain, volumes, standings, demands: judged };
}

export const registeredDomains = (domains: DomainRecord[]) =>
  Map.groupBy(domains, ({ name }) => organizationalDomain(name));

/** Each domain costs a dozen questions to DNS. */
const maxDomains = 20;

interface SenderRules {
  compliances: Compliance[];
  /** More domains than are looked at. */
  isCut: boolean;
  reports: LastReports;
}

/** Of an organization, by its own mail alone. Asks DNS. */
export async function readSenderRules(
  db: Db,
  { config, orgId, now }: { config: Config; orgId: string; now: number },
): Promise<SenderRules> {
  const verified = (await listDomains(db, orgId)).filter(({ status }) => status === 'verified');
  const wanted = { orgIds: [orgId], now, days: countedDays };
  const [days, complaints, mails] = await Promise.all([
    readMailboxDays(db, wanted),
    readComplaintDays(db, wanted),
    readNewMails(db, orgId),
  ]);
  const { dnsServers: servers } = config;
  const { probes, timeouts } = realSurroundings;
  const dns = createDns({ servers, probe: probes[0]!, timeoutMs: timeouts.dns });
  // Nothing is connected to: the addresses are those of the settings, or of the server's name.
  const origins = originsOf(config).map((origin) => ({ origin, results: Promise.resolve([]) }));
  const context = { dns, config, senders: sendingAddressesOf(origins, { config, dns }) };
  const groups = [...registeredDomains(verified.slice(0, maxDomains))];
  return {
    compliances: await Promise.all(
      groups.map(([domain, domains]) => complianceOf(domain, domains, { days, mails, context })),
    ),
    isCut: verified.length > maxDomains,
    reports: lastReports(complaints.map(({ name, day }) => ({ name, at: day }))),
  };
}
