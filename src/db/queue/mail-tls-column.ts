/** The column `tls` of emails: empty for what most mails demand. */
import type { MailTls } from '../../glossary.ts';

export const mailTlsColumn = {
  read: (stored: string): MailTls => (stored === '' ? 'opportunistic' : (stored as MailTls)),
};
