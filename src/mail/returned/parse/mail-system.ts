/**
 * Whether a mail system wrote a mail, or a person, who may quote or attach a bounce, even the very words of a server: only a
 * system's words are believed.
 */
import type { ParsedMail } from './parsed-mail.ts';

/** The names of daemons, in the display name or the address. */
const daemon =
  /\b(?:mailer?[-_. ]?daemon|post[-_.]?master|mdaemon|mmdf|mail delivery (?:sub)?system|internet mail delivery|mail administrator|system administrator)\b|microsoftexchange[\da-f]{32}@/i;
/** Addresses that nobody writes mail with. */
const machine =
  /(?:mail[-_.]?(?:gateway|service|server|system|filter|scan|security)|anti-?(?:virus|spam)|no[-_.]?reply)[\w.-]{0,40}@/i;

export function isFromMailSystem(mail: ParsedMail): boolean {
  // RFC 5321 section 4.5.5. Programs of people write no mail without a From.
  if (mail.fromNullSender) return true;
  const from = mail.header('from').replace(/@[^\s<>"]+/g, '@');
  return !from.includes('@') || daemon.test(from) || machine.test(from);
}

/** RFC 6522: a mail that is a report, not one that has a report in it. */
export function isReport(mail: ParsedMail): boolean {
  return /^\s*multipart\/report\b/i.test(mail.header('content-type'));
}
