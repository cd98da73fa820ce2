/**
 * Rules for custom headers. docs/api.md section 2.1 names four that the caller cannot set; the others refused here would
 * break or falsify the message. Date, Message-ID, Reply-To and Sender replace ours if they are valid; there is never a
 * second field.
 */
import { mailboxCure, parseMailbox } from '#platform/values/address.ts';
import { isTlsNotRequired, tlsRequiredField } from '#platform/values/tls-required.ts';
import { structureOf } from './header-grammar.ts';

export type CustomHeaders = Record<string, string>;

/**
 * RFC 5322 section 3.6.8: a field name is printable ASCII without the colon. RFC 9110's token is the part of it that
 * every host accepts; the length leaves space for a value on the line.
 */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,76}$/;

/** Hosts accept about 32 KiB of headers in all, and the time for folding grows with the square of a value's length. */
const maxValueLength = 16_384;

const refused =
  /^(from|to|subject|dkim-signature|mime-version|content-.*|cc|bcc|return-path|received|resent-.*|arc-.*|authentication-results)$/i;

const replacing = ['date', 'message-id', 'reply-to', 'sender'] as const;
type Replacing = (typeof replacing)[number];

/** RFC 5322 section 3.6.4, without obsolete and quoted forms. It must fit on a line, which has 998 bytes. */
const messageId = /^(?=.{1,900}$)<?[!#-'*+\-./0-9=?A-Z^-~]+@[!#-'*+\-./0-9=?A-Z^-~[\]]+>?$/;

export interface HeaderIssue {
  message: string;
  /** A description of what is valid. */
  expected: string;
}

/** Null if the header may be set. */
export function headerIssue(name: string, value: string): HeaderIssue | null {
  const wrong = (expected: string) => ({ message: `the value of ${name} must be ${expected}`, expected });
  if (!token.test(name)) {
    return {
      message: `"${name}" is not a valid header name`,
      expected: 'a header name of at most 76 characters',
    };
  }
  if (refused.test(name)) {
    return { message: `the header ${name} cannot be set`, expected: 'a header that may be set' };
  }
  if (/[\r\n\0]/.test(value)) return wrong('free of CR, LF and NUL');
  if (value.length > maxValueLength) return wrong(`at most ${maxValueLength} characters`);
  if (!value.isWellFormed()) return wrong('well-formed Unicode');
  const expected = unmetRule(name, value.trim());
  return expected === null ? null : wrong(expected);
}

/** The rule of this header that the value breaks, in words; null if there is none. */
function unmetRule(name: string, value: string): string | null {
  switch (name.toLowerCase()) {
    case 'date':
      return Number.isNaN(Date.parse(value)) ? 'a date' : null;
    case 'message-id':
      return messageId.test(value) ? null : 'a single <id@domain>';
    case 'reply-to':
    case 'sender':
      return parseMailbox(value) ? null : `a single address${mailboxCure(value)}`;
    case tlsRequiredField:
      return isTlsNotRequired(value) ? null : 'No';
  }
  const structure = structureOf(name);
  return structure && structure.write(value) === null ? structure.expected : null;
}

/** Headers that may occur once (RFC 5322 section 3.6, RFC 2369 section 2) and are repeated in another letter case. */
export function repeatedHeaders(names: string[]): [name: string, other: string][] {
  const first = new Map<string, string>();
  return names.flatMap((name) => {
    const key = name.toLowerCase();
    const other = first.get(key);
    if (other === undefined) first.set(key, name);
    const occursOnce = replacing.some((one) => one === key) || structureOf(key) !== undefined;
    return other !== undefined && occursOnce ? [[name, other] as [string, string]] : [];
  });
}

/** Separates the headers that replace ours, by lower-case name, from the rest. */
export function splitHeaders(headers: CustomHeaders): {
  own: Partial<Record<Replacing, string>>;
  custom: { key: string; value: string }[];
} {
  const own: Partial<Record<Replacing, string>> = {};
  const custom: { key: string; value: string }[] = [];
  for (const [key, value] of Object.entries(headers)) {
    const name = replacing.find((one) => one === key.toLowerCase());
    if (name) own[name] = value.trim();
    else custom.push({ key, value: value.trim() });
  }
  return { own, custom };
}
