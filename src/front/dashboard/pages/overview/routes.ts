/** An organization's overview: figures and what needs attention. Before its first email, the steps to send one. */

import { countWaiting, progressOf } from '#accounts/rows/attention-rows.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  show,
} from '#front/dashboard/page.ts';
import { notFound } from '#front/dashboard/page-error.ts';
import { presentNeeds, presentVerdict } from '#front/dashboard/server-status.ts';
import { readFigures } from '#mail/record/rows/statistics.ts';
import { readOwnerNeeds } from '#operate/status/owner-needs.ts';
import type { Status } from '#operate/status/read-status.ts';
import { bounceRate, complaintRate, shareOf } from '#operate/status/reputation.ts';
import { barsOf, beginOf, timesOf, topOf, totalOf, windows } from './figures.ts';

export const overviewPage: DashboardPage = { organization: { 'GET /dashboard/o/:org': overview } };

const [day, week, month] = windows as [(typeof windows)[0], (typeof windows)[0], (typeof windows)[0]];

async function overview(
  visit: OrgVisit,
  { db, config, operatorJobs, isDevelopment }: PageParts,
): Promise<PageAnswer> {
  const { org, query, now } = visit;
  const progress = await progressOf(db, org.id);
  if (!progress.hasSent) return show('overview/first-steps', 'Overview', { progress });
  const window = windows.find(({ name }) => name === query.get('window')) ?? day;
  const all = await readFigures(db, org.id, beginOf(month, now));
  const of = (hours: typeof window) => all.filter(({ hour }) => hour >= beginOf(hours, now));
  const total = totalOf(of(window));
  const organization = await findOrganization(db, org.id);
  if (!organization) throw notFound('organization');
  const counts = totalOf(of(week));
  const lowShare = config.creditsLow / 100;
  const storeBytes = config.receivedStore;
  const needs = await readOwnerNeeds({ db, org: organization, counts, lowShare, storeBytes, now });
  const ofServer = (status: Status) => presentVerdict(status, isDevelopment);
  const bars = barsOf(of(window), window, await countWaiting(db, org.id), now);
  const data = {
    progress: progress.hasKey && progress.isVerified ? null : progress,
    windows,
    window,
    total,
    bars,
    top: topOf(bars),
    times: timesOf(of(window)),
    shares: {
      delivered: shareOf(total.delivered, total.sent),
      opened: shareOf(total.opened, total.delivered),
      clicked: shareOf(total.clicked, total.delivered),
    },
    bounces: bounceRate(total),
    complaints: complaintRate(total),
    attention: [
      ...(visit.user.isOperator ? ofServer(await operatorJobs.status()) : []),
      ...presentNeeds(needs),
    ],
    isDevelopment,
  };
  return show('overview/overview', 'Overview', data, { scripts: ['live.js'] });
}
