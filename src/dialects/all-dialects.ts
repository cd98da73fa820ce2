/** The dialects by their names, as POSTERN_DIALECTS has them. */
import type { Dialect, DialectName } from './dialect.ts';
import { postmark } from './postmark/postmark-dialect.ts';
import { resend } from './resend/resend-dialect.ts';
import { sendgrid } from './sendgrid/sendgrid-dialect.ts';

const dialects: Record<DialectName, Dialect> = { resend, postmark, sendgrid };

export function dialectsNamed(names: readonly DialectName[]): Dialect[] {
  return names.map((name) => dialects[name]);
}
