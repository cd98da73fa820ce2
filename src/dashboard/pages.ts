/** All pages. To add one, add its folder in pages/, a line here, and its routes in security/route-access.ts. */
import type { DashboardPage } from './page.ts';
import { accountPage } from './pages/account/routes.ts';
import { secondFactorPage } from './pages/account/second-factor.ts';
import { doctorPage } from './pages/doctor/routes.ts';
import { dkimPage } from './pages/domains/dkim.ts';
import { domainPage } from './pages/domains/domain-page.ts';
import { domainsPage } from './pages/domains/routes.ts';
import { emailPage } from './pages/email/routes.ts';
import { exportPage } from './pages/emails/email-export.ts';
import { emailsPage } from './pages/emails/routes.ts';
import { keysPage } from './pages/keys/routes.ts';
import { organizationsPage } from './pages/organizations/routes.ts';
import { overviewPage } from './pages/overview/routes.ts';
import { queueActionsPage } from './pages/queue/queue-action-forms.ts';
import { queuePage } from './pages/queue/routes.ts';
import { suspensionsPage } from './pages/queue/suspension-forms.ts';
import { sendTestPage } from './pages/send-test/routes.ts';
import { setUpPage } from './pages/set-up/routes.ts';
import { signInByLinkPage } from './pages/sign-in/by-link.ts';
import { signInPage } from './pages/sign-in/routes.ts';
import { listPage } from './pages/suppressions/list.ts';
import { suppressionsPage } from './pages/suppressions/routes.ts';
import { teamPage } from './pages/team/routes.ts';
import { themePage } from './pages/theme/routes.ts';
import { usagePage } from './pages/usage/routes.ts';
import { webhookEventsPage } from './pages/webhooks/endpoint-events.ts';
import { webhookPage } from './pages/webhooks/endpoint-page.ts';
import { webhooksPage } from './pages/webhooks/routes.ts';
import { webhookTestPage } from './pages/webhooks/test-forms.ts';
import { welcomePage } from './pages/welcome/routes.ts';

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
