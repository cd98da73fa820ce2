/** An organization's overview: figures and what needs attention. Before its first email, the steps to send one. */

import {
  failingDomains,
  longestWaiting,
  progressOf,
  troubledWebhooks,
  unverifiedDomains,
} from '../../../db/accounts/attention-rows.ts';
import { findOrganization } from '../../../db/accounts/organizations.ts';
import { readFigures } from '../../../db/events/statistics.ts';
import { readDestinationStatuses, routesOf } from '../../../db/queue/destination-status-rows.ts';
import { bounceRate, complaintRate, shareOf } from '../../../operate/status/reputation.ts';
import { type DashboardPage, type OrgVisit, type PageAnswer, type PageParts, show } from '../../page.ts';
import { notFound } from '../../page-error.ts';
import { presentStatus } from '../../server-status.ts';
import { type AttentionItem, attentionItems, maxOfAKind } from './attention.ts';
import { barsOf, beginOf, timesOf, totalOf, windows } from './figures.ts';

export const overviewPage: DashboardPage = { organization: { 'GET /dashboard/o/:org': overview } };

const [day, week, month] = windows as [(typeof windows)[0], (typeof windows)[0], (typeof windows)[0]];

async function overview(visit: OrgVisit, { db, config, operatorJobs }: PageParts): Promise<PageAnswer> {
  const { org, query, now } = visit;
  const progress = await progressOf(db, org.id);
  if (!progress.hasSent) return show('overview/first-steps', 'Overview', { progress });
  const window = windows.find(({ name }) => name === query.get('window')) ?? day;
  const all = await readFigures(db, org.id, beginOf(month, now));
  const of = (hours: typeof window) => all.filter(({ hour }) => hour >= beginOf(hours, now));
  const total = totalOf(of(window));
  const lastWeek = totalOf(of(week));
  const data = {
    windows,
    window,
    total,
    bars: barsOf(of(window), window, now),
    times: timesOf(of(window)),
    shares: {
      delivered: shareOf(total.delivered, total.sent),
      opened: shareOf(total.opened, total.delivered),
      clicked: shareOf(total.clicked, total.delivered),
    },
    bounces: bounceRate(total),
    complaints: complaintRate(total),
    attention: await attention(),
    server: visit.user.isOperator ? presentStatus(await operatorJobs.status()) : null,
  };
  return show('overview/overview', 'Overview', data, { scripts: ['uplot.js', 'chart.js'] });

  async function attention(): Promise<AttentionItem[]> {
    const organization = await findOrganization(db, org.id);
    if (!organization) throw notFound('organization');
    const waiting = await longestWaiting(db, org.id);
    return attentionItems({
      now,
      org: organization,
      lowShare: config.creditsLow / 100,
      waiting,
      domains: await unverifiedDomains(db, org.id, maxOfAKind),
      failingDomains: await failingDomains(db, org.id, maxOfAKind),
      webhooks: await troubledWebhooks(db, org.id, maxOfAKind),
      statuses: await readDestinationStatuses(db, now),
      routes: await routesOf(
        db,
        waiting.map(({ domain }) => domain),
      ),
      bounces: bounceRate(lastWeek),
      complaints: complaintRate(lastWeek),
    });
  }
}
