/** The jobs that maintenance.ts runs; most delete rows that are older than the time for which their kind is kept. */

import { watchKeys } from '#accounts/dkim-rotation.ts';
import { findVerifiedOwner } from '#accounts/rows/domains-table.ts';
import { forgetLinks } from '#accounts/rows/one-time.ts';
import { forgetInvitations } from '#accounts/rows/open-invitations.ts';
import { forgetSessions } from '#accounts/rows/sessions-table.ts';
import { forgetSoftBounces } from '#accounts/rows/soft-bounces.ts';
import { watchDomains } from '#accounts/watch-domains.ts';
import type { Accept } from '#mail/accept/accept.ts';
import { forgetAnswers } from '#mail/accept/rows/idempotency.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { forgetLearned } from '#mail/queue/rows/learned-rows.ts';
import { deleteOldReceived } from '#mail/received/rows/received-mails.ts';
import { createPauseJudge } from '#mail/record/auto-pause/judge-organizations.ts';
import { forgetPauses } from '#mail/record/auto-pause/rows/auto-pauses.ts';
import { sweepPauses } from '#mail/record/auto-pause/sweep-pauses.ts';
import { forgetGroups } from '#mail/record/rows/group-statistics.ts';
import { partitionJobs } from '#mail/record/rows/partitioned-tables.ts';
import { removeMessages } from '#mail/record/rows/retention.ts';
import { forgetFigures, sumUp } from '#mail/record/rows/statistics.ts';
import { createPoster } from '#mail/webhooks/guarded-post.ts';
import { forgetWebhookAttempts, forgetWebhookMessages } from '#mail/webhooks/rows/webhook-attempts.ts';
import { sendNotices } from '#operate/notices/send-notices.ts';
import { sendTlsReports } from '#operate/tls-reports/send-tls-reports.ts';
import { isRecent } from '#platform/base/clock.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import type { MaintenanceJob } from '#platform/database/schema/maintenance-job.ts';
import { forgetNodes } from '#platform/database/tables/nodes.ts';
import { headerOf } from '#platform/values/address.ts';
import { recipientsOf, withoutName } from '#platform/values/recipients.ts';
import type { ServerContext } from './context.ts';
import type { Intake } from './intake.ts';

/** Thirteen months, so that each month can be compared with the same month of the year before. */
const keepStatisticsMs = 400 * 86_400_000;

export function maintenanceJobs(
  context: ServerContext,
  { accept, serverMailer: mailer }: Pick<Intake, 'accept' | 'serverMailer'>,
  baseUrl: () => string,
): MaintenanceJob[] {
  const { config, db, clock, log, random, resolve, eventSignal, onError } = context;
  const { now } = clock;
  const judge = createPauseJudge(config.autoPause, now);
  const fedByMail = {
    idempotency: () => forgetAnswers(db, now(), config.idempotencyKeep),
    'webhook attempts': () => forgetWebhookAttempts(db, now() - config.keepEvents),
    'webhook messages': () => forgetWebhookMessages(db, now() - config.keepEvents),
  };
  const jobs: MaintenanceJob[] = [
    {
      name: 'statistics',
      isFedByMail: true,
      isUrgent: true,
      isTimely: true,
      run: () => sumUp(db, judge, now()),
    },
    ...Object.entries(fedByMail).map(([name, run]) => ({ name, run, isFedByMail: true, isByAge: true })),
    { name: 'auto-pauses', run: () => sweepPauses(db, now()), isUrgent: true },
    { name: 'old auto-pauses', run: () => forgetPauses(db, now()), isByAge: true },
    { name: 'sessions', run: () => forgetSessions(db, now()), isByAge: true },
    { name: 'one-time links', run: () => forgetLinks(db, now()), isByAge: true },
    { name: 'invitations', run: () => forgetInvitations(db, now()), isByAge: true },
    { name: 'nodes', run: () => forgetNodes(db, now()) },
    { name: 'soft bounces', run: () => forgetSoftBounces(db, now()), isByAge: true },
    { name: 'learned', run: () => forgetLearned(db, now()) },
    { name: 'received mail', run: () => deleteOldReceived(db, now() - config.keepReceived), isByAge: true },
    { name: 'messages', run: removeMessages(db, now, config.keepMessages), isByAge: true },
    ...partitionJobs({
      db,
      openWithoutTimeout: () => openDatabase(config),
      now,
      keepEvents: config.keepEvents,
      keepEmails: config.keepEmails,
    }),
    { name: 'old statistics', run: () => forgetFigures(db, now() - keepStatisticsMs), isByAge: true },
    { name: 'old statistics by group', run: () => forgetGroups(db, now() - keepStatisticsMs), isByAge: true },
    {
      name: 'DKIM keys',
      isTimely: true,
      isRemote: true,
      run: watchKeys(db, {
        now,
        resolve,
        keepMs: config.mtaMaxAge,
        onSigns: (domain, { selector }) =>
          log.info(`mail from ${domain} is now signed with the DKIM key ${selector}`),
      }),
    },
    {
      name: 'domain checks',
      isUrgent: true,
      isTimely: true,
      isRemote: true,
      run: watchDomains(db, {
        names: config,
        resolve,
        now,
        random,
        refusesUnverified: config.unverifiedDomains === 'refuse',
        onChecked: eventSignal.notify,
      }),
    },
    ...tlsReportJob(context, accept),
    ...(mailer === null
      ? []
      : [
          {
            name: 'notices',
            isTimely: true,
            run: sendNotices({ db, config, now, baseUrl, mailer, onError }),
          },
        ]),
  ];
  return jobs.map((job) => (job.isByAge ? spared(job, context) : job));
}

/**
 * A clock that has leapt far may be wrong, and is set right soon: until then, what was deleted as old would be lost. A machine that
 * sleeps for minutes, perhaps many times an hour, deletes as usual.
 */
const doubtMs = 3_600_000;

function spared(job: MaintenanceJob, { lastLeap, clock }: ServerContext): MaintenanceJob {
  return { ...job, run: async () => (isRecent(lastLeap.farAt, clock.now(), doubtMs) ? 0 : job.run()) };
}

/** The first node that accepts mail and finds a report due sends it. */
function tlsReportJob(context: ServerContext, accept: Accept | null): MaintenanceJob[] {
  const { config, clock, db, onError } = context;
  const sender = config.tlsReports;
  if (sender === null || accept === null) return [];
  const resolve = createResolver(config.dnsServers);
  const httpsPort = context.policyPort;
  // Never to a private address, whatever endpoints of webhooks may be: strangers' DNS names these.
  const poster = createPoster({ resolve, allowPrivate: httpsPort !== 443, timeoutMs: 10_000 });
  const run = sendTlsReports({
    db,
    now: clock.now,
    resolve,
    httpsPort,
    sender,
    from: headerOf(sender),
    findSenderOrg: (domain) => findVerifiedOwner(db, domain),
    accept: ({ orgId, to, subject, raw, idempotency }) =>
      accept(
        {
          recipients: recipientsOf({ to: [withoutName(to)] }),
          from: headerOf(sender),
          subject,
          attachments: [],
          headers: {},
          tags: {},
          tracking: { openTracking: false, clickTracking: false },
          idempotency,
          // RFC 8460 section 5.3: TLS that fails must not keep the report about it.
          tlsRequired: false,
          requestId: 'tls-report',
          rawMessage: { raw, messageId: null },
        },
        { orgId, keyId: null, scopes: [] },
      ),
    post: (request) => poster.post(request, AbortSignal.timeout(15_000)),
    onError,
  });
  return [{ name: 'TLS reports', isRemote: true, run }];
}
