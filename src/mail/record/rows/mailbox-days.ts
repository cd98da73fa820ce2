/**
 * Mail of a registered domain and all below it to personal mailboxes, by UTC day, as Gmail and Microsoft count it: the group
 * `mailboxes` of group-statistics.ts, whose names are a provider and a domain.
 */
import type { Db } from '#platform/database/engine/open.ts';
import type { MailboxProvider } from '#platform/values/mailbox-provider.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';

export function mailboxesName(provider: MailboxProvider, domain: string): string {
  return `${provider} ${organizationalDomain(domain)}`;
}

export interface MailboxDay {
  provider: MailboxProvider;
  /** Registered. */
  domain: string;
  /** When it began. */
  day: number;
  sent: number;
  delivered: number;
  complained: number;
}

const dayMs = 86_400_000;

/** The day of `now` and the ones before it. */
function lastDays(now: number, count: number): number[] {
  const today = now - (now % dayMs);
  return Array.from({ length: count }, (_, index) => today - index * dayMs);
}

interface Wanted {
  orgIds: string[];
  now: number;
  days: number;
}

const rowsOf = (db: Db, { orgIds, now, days }: Wanted) =>
  db('group_statistics').whereIn('org_id', orgIds).whereIn('day', lastDays(now, days));

/** Of these organizations together. */
export async function readMailboxDays(db: Db, wanted: Wanted): Promise<MailboxDay[]> {
  const rows: Record<string, string>[] = await rowsOf(db, wanted)
    .where({ kind: 'mailboxes' })
    .whereNot({ name: '' })
    .groupBy('name', 'day')
    .select('name', 'day')
    .sum({ sent: 'sent', delivered: 'delivered', complained: 'complained' });
  return rows.map(({ name, day, sent, delivered, complained }) => {
    const [provider, domain] = name!.split(' ') as [MailboxProvider, string];
    const sums = { sent: Number(sent), delivered: Number(delivered), complained: Number(complained) };
    return { provider, domain, day: Number(day), ...sums };
  });
}

/** The days on which people complained, by the domains of their mailboxes; empty: of several. */
export async function readComplaintDays(db: Db, wanted: Wanted): Promise<ComplaintDay[]> {
  const rows = await rowsOf(db, wanted)
    .where({ kind: 'domain' })
    .where('complained', '>', 0)
    .select('name', 'day');
  return rows.map(({ name, day }) => ({ name, day: Number(day) }));
}

interface ComplaintDay {
  name: string;
  day: number;
}
