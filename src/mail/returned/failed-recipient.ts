/**
 * Whether a returned mail is about the address that we wrote to, or about one that its server passed the mail on to: a
 * member of a list, the target of a forward. Such a failure says nothing about our address, whose other members may have
 * the mail.
 */

import type { ReportedFailure } from '#mail/returned/parse-result.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';

/** The failure of the recipient in the report, or null if the report is only about other addresses. */
export function failureOf(recipient: string, reading: ReportedFailure): ReportedFailure | null {
  const { others = [], ...first } = reading;
  return [first, ...others].find((one) => !isAboutAnother(one, recipient)) ?? null;
}

function isAboutAnother({ recipient, isExpanded }: ReportedFailure, ours: string): boolean {
  if (isExpanded) return true;
  // If no final recipient is named, the one we wrote to is meant.
  return recipient !== null && !isSameMailbox(recipient, ours);
}

/** Compares what a report names with our address: without case, quotes, brackets, source routes and tags. */
export function isSameMailbox(named: string, ours: string): boolean {
  const own = mailboxIn(ours);
  const spellings = [named, unescaped(named)].map(mailboxIn);
  return spellings.some(({ local, domain }) => {
    // Not an address, such as an X.400 name: it cannot be compared.
    if (local === null) return true;
    return local === own.local && (domain === null || domain === own.domain);
  });
}

/** RFC 6533 section 3 writes \x{FC} in an address that must be ASCII, RFC 3461 section 4 writes +2B for a plus sign. */
function unescaped(text: string): string {
  return text
    .replace(/\\x\{([\dA-F]{2,6})\}/gi, (all, digits: string) => characterOf(digits) ?? all)
    .replace(/\+([\dA-F]{2})/g, (all, digits: string) => characterOf(digits) ?? all);
}

function characterOf(digits: string): string | null {
  const code = Number.parseInt(digits, 16);
  return code <= 0x10ffff ? String.fromCodePoint(code) : null;
}

/** `local` null: the text has no address in it; `domain` null: a name without a domain, or with one of an internal network. */
function mailboxIn(text: string): { local: string | null; domain: string | null } {
  const bare = /<([^<>]*)>/.exec(text)?.[1] ?? text.replace(/ \(.*$/s, '');
  const address = withoutQuotes(
    bare
      .trim()
      .replace(/^(?:(?:rfc822|utf-8|smtp|mailto)[:;] ?)+/i, '')
      // RFC 5321 section 4.1.2: a source route, as in @relay.example:ann@example.org.
      .replace(/^@[^:]*:/, ''),
  ).replace(/\.$/, '');
  const domain = domainOf(address);
  const whole = domain === null ? address.toLowerCase() : compareKey(address);
  const [, named, isQualified] = /^(.*?)(@[^@]*)?$/s.exec(whole)!;
  const tagAt = named!.indexOf('+', 1);
  const local = tagAt === -1 ? named! : named!.slice(0, tagAt);
  return { local: isQualified || /^[\w.-]+$/.test(local) ? local : null, domain };
}

/** A whole address in quotes; quotes around the local part alone are part of it. */
function withoutQuotes(text: string): string {
  const inner = text.slice(1, -1);
  const isQuoted =
    /^["']/.test(text) && text.at(-1) === text[0] && inner.includes('@') && !/["']/.test(inner);
  return isQuoted ? inner : text;
}
