/** How much each registered domain sent to personal mailboxes: whether it is a bulk sender. */
import type { MailboxDay } from '#mail/record/rows/mailbox-days.ts';
import { type MailboxProvider, mailboxProviders } from '#platform/values/mailbox-provider.ts';
import { type Standings, standingOf } from './rules.ts';

/** Days that are counted, the present one among them. */
export const countedDays = 30;

export interface Volume {
  provider: MailboxProvider;
  /** Recipients on the day that had most. */
  most: number;
  /** When that day began; null: nothing was sent. */
  day: number | null;
  delivered: number;
  complained: number;
}

/** Of one domain, in the order of the providers. */
export function volumesOf(days: MailboxDay[], domain: string): Volume[] {
  const own = days.filter((one) => one.domain === domain);
  return mailboxProviders.map((provider) => {
    const some = own.filter((one) => one.provider === provider);
    const sum = (of: 'delivered' | 'complained') => some.reduce((total, one) => total + one[of], 0);
    const [largest] = some.toSorted((a, b) => b.sent - a.sent || b.day - a.day);
    return {
      provider,
      most: largest?.sent ?? 0,
      day: largest?.day ?? null,
      delivered: sum('delivered'),
      complained: sum('complained'),
    };
  });
}

export function standingsOf(volumes: Volume[]): Standings {
  return Object.fromEntries(volumes.map(({ provider, most }) => [provider, standingOf(most)])) as Standings;
}
