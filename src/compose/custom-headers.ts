/**
 * Rules for custom headers. docs/api.md section 2.1 names four that the caller cannot set; the others refused here would
 * break or falsify the message. Date, Message-ID, Reply-To and Sender replace ours if they are valid; there is never a
 * second field.
 */
import { parseMailbox } from '../mail/address.ts';

export type CustomHeaders = Record<string, string>;

/**
 * By RFC 5322 section 3.6.8, a field name is printable ASCII without the colon. RFC 9110's token is the part of it that
 * every host accepts; the length leaves space for a value on the line.
 */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,76}$/;

/** Hosts accept about 32 KiB of headers in all, and the time for folding grows with the square of a value's length. */
const maxValueLength = 16_384;

const refused =
  /^(from|to|subject|dkim-signature|mime-version|content-.*|cc|bcc|return-path|received|resent-.*|arc-.*|authentication-results)$/i;

const replacing = ['date', 'message-id', 'reply-to', 'sender'] as const;
type Replacing = (typeof replacing)[number];

/** RFC 5322 section 3.6.4, without obsolete and quoted forms. It must fit on a line, which has 998 octets. */
const messageId = /^(?=.{1,900}$)<?[!#-'*+\-./0-9=?A-Z^-~]+@[!#-'*+\-./0-9=?A-Z^-~[\]]+>?$/;

/** An error message, or null if the header may be set. */
export function headerFault(name: string, value: string): string | null {
  if (!token.test(name)) return `"${name}" is not a valid header name`;
  if (refused.test(name)) return `the header ${name} cannot be set`;
  if (/[\r\n\0]/.test(value)) return `the value of ${name} must not contain CR, LF or NUL`;
  if (value.length > maxValueLength)
    return `the value of ${name} must not be longer than ${maxValueLength} characters`;
  if (!value.isWellFormed()) return `the value of ${name} must be well-formed Unicode`;
  return replacementFault(name.toLowerCase(), value);
}

function replacementFault(name: string, value: string): string | null {
  switch (name) {
    case 'date':
      return Number.isNaN(Date.parse(value)) ? 'the value of Date must be a date' : null;
    case 'message-id':
      return messageId.test(value) ? null : 'the value of Message-ID must be a single <id@domain>';
    case 'reply-to':
    case 'sender':
      return parseMailbox(value) ? null : `the value of ${name} must be a single address`;
    default:
      return null;
  }
}

/** Separates the headers that replace ours, by lower-case name, from the rest. If one is given twice in different letter case, the last counts. */
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
