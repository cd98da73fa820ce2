/** Labels and badge colours of the states of emails and deliveries. */
import type { EmailStatus } from '#platform/values/states.ts';

interface Words {
  text: string;
  tone: 'good' | 'bad' | 'warn' | 'busy' | 'quiet';
}

export const statusWords: Record<EmailStatus, Words> = {
  scheduled: { text: 'Scheduled', tone: 'quiet' },
  queued: { text: 'Queued', tone: 'busy' },
  sending: { text: 'Sending', tone: 'busy' },
  processing: { text: 'In progress', tone: 'busy' },
  deferred: { text: 'Deferred', tone: 'warn' },
  held: { text: 'Held', tone: 'warn' },
  delivered: { text: 'Delivered', tone: 'good' },
  partially_delivered: { text: 'Partly delivered', tone: 'warn' },
  bounced: { text: 'Bounced', tone: 'bad' },
  complained: { text: 'Complained', tone: 'bad' },
  expired: { text: 'Expired', tone: 'bad' },
  failed: { text: 'Failed', tone: 'bad' },
  canceled: { text: 'Canceled', tone: 'quiet' },
  suppressed: { text: 'Suppressed', tone: 'warn' },
  insufficient_credit: { text: 'No credit', tone: 'bad' },
};

/** Options of a select field. */
export const statusOptions = Object.entries(statusWords).map(([status, { text }]) => [status, text] as const);
