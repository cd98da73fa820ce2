/** All pages. To add one, add its folder in pages/, a line here, and its routes in security/route-access.ts. */

import { accountPage } from '#dashboard/pages/account/routes.ts';
import { secondFactorPage } from '#dashboard/pages/account/second-factor.ts';
import { doctorPage } from '#dashboard/pages/doctor/routes.ts';
import { dkimPage } from '#dashboard/pages/domains/dkim.ts';
import { domainPage } from '#dashboard/pages/domains/domain-page.ts';
import { domainsPage } from '#dashboard/pages/domains/routes.ts';
import { emailPage } from '#dashboard/pages/email/routes.ts';
import { exportPage } from '#dashboard/pages/emails/email-export.ts';
import { emailsPage } from '#dashboard/pages/emails/routes.ts';
import { keysPage } from '#dashboard/pages/keys/routes.ts';
import { organizationsPage } from '#dashboard/pages/organizations/routes.ts';
import { overviewPage } from '#dashboard/pages/overview/routes.ts';
import { queueActionsPage } from '#dashboard/pages/queue/queue-action-forms.ts';
import { queuePage } from '#dashboard/pages/queue/routes.ts';
import { suspensionsPage } from '#dashboard/pages/queue/suspension-forms.ts';
import { sendTestPage } from '#dashboard/pages/send-test/routes.ts';
import { setUpPage } from '#dashboard/pages/set-up/routes.ts';
import { signInByLinkPage } from '#dashboard/pages/sign-in/by-link.ts';
import { signInPage } from '#dashboard/pages/sign-in/routes.ts';
import { listPage } from '#dashboard/pages/suppressions/list.ts';
import { suppressionsPage } from '#dashboard/pages/suppressions/routes.ts';
import { teamPage } from '#dashboard/pages/team/routes.ts';
import { themePage } from '#dashboard/pages/theme/routes.ts';
import { usagePage } from '#dashboard/pages/usage/routes.ts';
import { webhookEventsPage } from '#dashboard/pages/webhooks/endpoint-events.ts';
import { webhookPage } from '#dashboard/pages/webhooks/endpoint-page.ts';
import { webhooksPage } from '#dashboard/pages/webhooks/routes.ts';
import { webhookTestPage } from '#dashboard/pages/webhooks/test-forms.ts';
import { welcomePage } from '#dashboard/pages/welcome/routes.ts';
import type { DashboardPage } from './page.ts';

/** If two routes match a path, the first is used: `/suppressions/export` must come before `/suppressions/:id`. */
export const pages: DashboardPage[] = [
  signInPage,
  signInByLinkPage,
  setUpPage,
  welcomePage,
  themePage,
  accountPage,
  secondFactorPage,
  organizationsPage,
  overviewPage,
  emailsPage,
  exportPage,
  emailPage,
  sendTestPage,
  domainsPage,
  domainPage,
  dkimPage,
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
