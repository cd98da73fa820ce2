/** Columns of emails that leave out what most mails have: each row stays for good. */
import type { MailTls } from '../../glossary.ts';

/** Empty: opportunistic. */
export const mailTlsColumn = {
  read: (stored: string): MailTls => (stored === '' ? 'opportunistic' : (stored as MailTls)),
};

/** An empty object means neither. */
export const trackingColumn = {
  read: (stored: string): { openTracking: boolean; clickTracking: boolean } => ({
    openTracking: false,
    clickTracking: false,
    ...JSON.parse(stored),
  }),
};
