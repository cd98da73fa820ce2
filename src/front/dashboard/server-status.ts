/** The status of the server (operate/status/) as the dashboard shows it to operators, at the head of their start pages. */

import { causes } from '#operate/condition/causes.ts';
import type { Need } from '#operate/status/need.ts';
import { orderText } from '#operate/status/operator-orders.ts';
import { isWell, type Status, verdictText } from '#operate/status/read-status.ts';
import { capital } from '#platform/base/capital.ts';

const development = {
  verdict: 'Development: no mail leaves this server.',
  next: null,
  orders: [],
  tone: 'good',
  items: [],
};

export function presentStatus(status: Status, isDevelopment: boolean) {
  if (isDevelopment) return development;
  return {
    verdict: verdictText(status),
    next: status.setUp,
    orders: status.orders.map((order) => ({ ...order, what: capital(orderText(order)) })),
    tone: isWell(status) ? 'good' : 'bad',
    items: presentNeeds(status.needs),
  };
}

export function presentNeeds(needs: Need[]) {
  return needs.map(({ cause, severity, path, figure, ...need }) => ({
    ...need,
    figure: capital(figure),
    label: capital(causes[cause].label),
    tone: severity === 'act' ? 'bad' : 'warn',
    href: `/dashboard${path}`,
  }));
}
