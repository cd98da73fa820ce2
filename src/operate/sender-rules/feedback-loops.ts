/** The feedback loops, by which providers report complaints: who registers where, and when a report last came. */
import { type MailboxProvider, mailboxProviderOf } from '#platform/values/mailbox-provider.ts';

type Loop = Exclude<MailboxProvider, 'gmail'> | 'others';

interface FeedbackLoop {
  of: string;
  /** Who registers what. */
  how: string;
  url: string;
}

/** Gmail has none: its Postmaster Tools show rates, by domain and by Feedback-ID. */
export const feedbackLoops: Record<Loop, FeedbackLoop> = {
  yahoo: {
    of: 'Yahoo (Complaint Feedback Loop)',
    how: 'The owner of a domain registers it, with the address for complaints',
    url: 'https://senders.yahooinc.com/complaint-feedback-loop/',
  },
  microsoft: {
    of: 'Outlook.com (Junk Email Reporting Program, in SNDS)',
    how: 'The operator registers the addresses that the server sends from',
    url: 'https://sendersupport.olc.protection.outlook.com/snds/',
  },
  others: {
    of: 'Comcast, Fastmail and others (Universal Feedback Loop of Validity)',
    how: 'The operator registers the addresses that the server sends from',
    url: 'https://fbl.validity.com/',
  },
};

export type LastReports = Record<Loop, number | null>;

/** `complaints`: the domains of those who complained, and when. */
export function lastReports(complaints: { name: string; at: number }[]): LastReports {
  const last: LastReports = { yahoo: null, microsoft: null, others: null };
  for (const { name, at } of complaints) {
    const provider = mailboxProviderOf(name);
    const loop = provider === null || provider === 'gmail' ? 'others' : provider;
    last[loop] = Math.max(last[loop] ?? 0, at);
  }
  return last;
}
