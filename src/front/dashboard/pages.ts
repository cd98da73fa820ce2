/** All pages. To add one, add its folder in pages/, a line here, and its routes in security/route-access.ts. */

import { accountPage } from '#front/dashboard/pages/account/routes.ts';
import { secondFactorPage } from '#front/dashboard/pages/account/second-factor.ts';
import { doctorPage } from '#front/dashboard/pages/doctor/routes.ts';
import { dkimPage } from '#front/dashboard/pages/domains/dkim.ts';
import { domainPage } from '#front/dashboard/pages/domains/domain-page.ts';
import { domainsPage } from '#front/dashboard/pages/domains/routes.ts';
import { emailPage } from '#front/dashboard/pages/email/routes.ts';
import { exportPage } from '#front/dashboard/pages/emails/email-export.ts';
import { emailsPage } from '#front/dashboard/pages/emails/routes.ts';
import { joinPage } from '#front/dashboard/pages/join/routes.ts';
import { keysPage } from '#front/dashboard/pages/keys/routes.ts';
import { organizationsPage } from '#front/dashboard/pages/organizations/routes.ts';
import { overviewPage } from '#front/dashboard/pages/overview/routes.ts';
import { pausesPage } from '#front/dashboard/pages/pauses/routes.ts';
import { queueActionsPage } from '#front/dashboard/pages/queue/queue-action-forms.ts';
import { queuePage } from '#front/dashboard/pages/queue/routes.ts';
import { suspensionsPage } from '#front/dashboard/pages/queue/suspension-forms.ts';
import { receivedPage } from '#front/dashboard/pages/received/routes.ts';
import { routesPage } from '#front/dashboard/pages/receiving-routes/routes.ts';
import { sendTestPage } from '#front/dashboard/pages/send-test/routes.ts';
import { senderRulesPage } from '#front/dashboard/pages/sender-rules/routes.ts';
import { setUpPage } from '#front/dashboard/pages/set-up/routes.ts';
import { signInByLinkPage } from '#front/dashboard/pages/sign-in/by-link.ts';
import { forgottenPage } from '#front/dashboard/pages/sign-in/forgotten.ts';
import { signInPage } from '#front/dashboard/pages/sign-in/routes.ts';
import { statisticsPage } from '#front/dashboard/pages/statistics/routes.ts';
import { streamsPage } from '#front/dashboard/pages/streams/routes.ts';
import { listPage } from '#front/dashboard/pages/suppressions/list.ts';
import { suppressionsPage } from '#front/dashboard/pages/suppressions/routes.ts';
import { teamPage } from '#front/dashboard/pages/team/routes.ts';
import { themePage } from '#front/dashboard/pages/theme/routes.ts';
import { usagePage } from '#front/dashboard/pages/usage/routes.ts';
import { webhookEventsPage } from '#front/dashboard/pages/webhooks/endpoint-events.ts';
import { webhookPage } from '#front/dashboard/pages/webhooks/endpoint-page.ts';
import { webhooksPage } from '#front/dashboard/pages/webhooks/routes.ts';
import { webhookTestPage } from '#front/dashboard/pages/webhooks/test-forms.ts';
import { welcomePage } from '#front/dashboard/pages/welcome/routes.ts';
import type { DashboardPage } from './page.ts';

/** If two routes match a path, the first is used: `/suppressions/export` must come before `/suppressions/:id`. */
export const pages: DashboardPage[] = [
  signInPage,
  signInByLinkPage,
  forgottenPage,
  setUpPage,
  joinPage,
  welcomePage,
  themePage,
  accountPage,
  secondFactorPage,
  organizationsPage,
  overviewPage,
  emailsPage,
  statisticsPage,
  senderRulesPage,
  exportPage,
  emailPage,
  sendTestPage,
  domainsPage,
  domainPage,
  dkimPage,
  routesPage,
  receivedPage,
  streamsPage,
  pausesPage,
  listPage,
  suppressionsPage,
  webhooksPage,
  webhookPage,
  webhookEventsPage,
  webhookTestPage,
  keysPage,
  usagePage,
  teamPage,
  queuePage,
  queueActionsPage,
  suspensionsPage,
  doctorPage,
];
