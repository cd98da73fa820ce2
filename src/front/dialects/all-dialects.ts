/** The dialects by their names, as POSTERN_DIALECTS has them. */

import { mailgun } from '#front/dialects/mailgun/mailgun-dialect.ts';
import { postmark } from '#front/dialects/postmark/postmark-dialect.ts';
import { resend } from '#front/dialects/resend/resend-dialect.ts';
import { sendgrid } from '#front/dialects/sendgrid/sendgrid-dialect.ts';
import type { DialectName } from '#platform/values/glossary.ts';
import type { Dialect } from './dialect.ts';

const dialects: Record<DialectName, Dialect> = { resend, postmark, sendgrid, mailgun };

export function dialectsNamed(names: readonly DialectName[]): Dialect[] {
  return names.map((name) => dialects[name]);
}
