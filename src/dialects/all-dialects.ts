/** The dialects by their names, as POSTERN_DIALECTS has them. */
import type { DialectName } from '../glossary.ts';
import type { Dialect } from './dialect.ts';
import { mailgun } from './mailgun/mailgun-dialect.ts';
import { postmark } from './postmark/postmark-dialect.ts';
import { resend } from './resend/resend-dialect.ts';
import { sendgrid } from './sendgrid/sendgrid-dialect.ts';

const dialects: Record<DialectName, Dialect> = { resend, postmark, sendgrid, mailgun };

export function dialectsNamed(names: readonly DialectName[]): Dialect[] {
  return names.map((name) => dialects[name]);
}
