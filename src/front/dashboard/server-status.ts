/** The status of the server (operate/status/) as the dashboard shows it to operators, at the head of their start pages. */

import { causes } from '#operate/condition/causes.ts';
import type { Need } from '#operate/status/need.ts';
import { type Order, orderText } from '#operate/status/operator-orders.ts';
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
    orders: status.orders.map((order) => ({
      ...order,
      what: capital(orderText(order)),
      href: linkOf(order),
    })),
    tone: isWell(status) ? 'good' : 'bad',
    items: presentNeeds(status.needs),
  };
}

/** The queue, with the destination or the held mail that the order is about. */
function linkOf({ kind, subject }: Order): string {
  return `${new URLSearchParams({ ...(subject && { q: subject }), ...(kind.startsWith('held') && { state: 'held' }) })}`;
}

/** The server's verdict as an entry among those of an organization; none if all is well. */
export function presentVerdict(status: Status, isDevelopment: boolean) {
  if (isDevelopment || isWell(status)) return [];
  const entry = { label: 'This server', subject: verdictText(status), href: '/dashboard/organizations' };
  const advice = 'See what to do on the page of the organizations.';
  return [
    { ...entry, tone: 'bad', since: null, figure: 'It concerns every organization', advice, command: '' },
  ];
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
