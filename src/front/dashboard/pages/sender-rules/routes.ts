/** The page that says whether an organization's mail meets what Gmail, Yahoo and Outlook.com demand of senders. */
import { inSlot } from '#front/dashboard/form-page.ts';
import { type DashboardPage, type OrgVisit, type PageParts, show } from '#front/dashboard/page.ts';
import type { FindingStatus } from '#operate/doctor/finding.ts';
import { type JudgedDemand, readSenderRules } from '#operate/sender-rules/compliance.ts';
import { feedbackLoops } from '#operate/sender-rules/feedback-loops.ts';
import { bulkPerDay, type Standing } from '#operate/sender-rules/rules.ts';
import { countedDays } from '#operate/sender-rules/volumes.ts';
import { capital } from '#platform/base/capital.ts';
import { providerTitles } from '#platform/values/mailbox-provider.ts';

export const senderRulesPage: DashboardPage = {
  organization: {
    'GET /dashboard/o/:org/sender-rules': (visit, parts) => page(visit, parts),
  },
};

const badges: Record<FindingStatus, { text: string; tone: string }> = {
  ok: { text: 'Met', tone: 'good' },
  warning: { text: 'Not met', tone: 'warn' },
  failure: { text: 'Not met', tone: 'bad' },
  skipped: { text: 'Unknown', tone: 'quiet' },
};

const standingBadges: Record<Standing, { text: string; tone: string }> = {
  bulk: { text: 'Bulk sender', tone: 'warn' },
  near: { text: 'Nearly', tone: 'warn' },
  small: { text: 'No', tone: 'quiet' },
};

async function page(visit: OrgVisit, { db, config, longWorkSlots }: PageParts) {
  const { org, now, user } = visit;
  const read = await inSlot(longWorkSlots.dnsChecks, visit, () =>
    readSenderRules(db, { config, orgId: org.id, now }),
  );
  const domains = read.compliances.map(({ domain, volumes, standings, demands }) => ({
    domain,
    volumes: volumes.map((volume) => ({
      ...volume,
      title: providerTitles[volume.provider],
      badge: standingBadges[standings[volume.provider]],
    })),
    demands: demands.map((one) => shown(one, user.isOperator)),
  }));
  const loops = Object.entries(feedbackLoops).map(([name, loop]) => ({
    ...loop,
    at: read.reports[name as keyof typeof read.reports],
  }));
  const complaints = `complaints@${config.returnPathDomain}`;
  const { isCut } = read;
  return show('sender-rules/sender-rules', 'Sender rules', {
    domains,
    isCut,
    loops,
    complaints,
    bulkPerDay,
    countedDays,
  });
}

/** Only the operator reads why the server fails a demand; an owner learns that it does. */
function shown(one: JudgedDemand, isOperator: boolean) {
  const isHidden = one.isServers && !isOperator && (one.verdict === 'failure' || one.verdict === 'warning');
  const { found, advice, records } = isHidden
    ? {
        found: 'something is wrong with it on this server',
        advice: 'ask the operator of this server',
        records: [],
      }
    : one;
  return {
    title: one.title,
    isServers: one.isServers,
    asking: one.asking.map((provider) => providerTitles[provider]).join(', '),
    badge: badges[one.verdict],
    found: capital(found),
    advice: advice && capital(advice),
    records,
  };
}
