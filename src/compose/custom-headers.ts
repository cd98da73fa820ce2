/**
 * Custom headers: which the caller may set. Four names are closed by the contract (docs/api.md section 2.1); the
 * others refused here would break or belie the message. Date, Message-ID, Reply-To and Sender replace ours, where
 * they are valid; there is never a second field.
 */
import { parseMailbox } from '../mail/address.ts';

export type CustomHeaders = Record<string, string>;

/**
 * RFC 5322 section 3.6.8: a field name is printable ASCII without the colon; RFC 9110's token is what passes
 * everywhere, where it leaves room on its line for a value.
 */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,76}$/;

/** What hosts take of headers ends at some 32 KiB in all; and the time that signing takes grows with their square. */
const maxValueLength = 16_384;

const refused =
  /^(from|to|subject|dkim-signature|mime-version|content-.*|cc|bcc|return-path|received|resent-.*|arc-.*|authentication-results)$/i;

const replacing = ['date', 'message-id', 'reply-to', 'sender'] as const;
type Replacing = (typeof replacing)[number];

/** RFC 5322 section 3.6.4, without its obsolete and quoted forms; it has to fit a line, which has 998 octets. */
const messageId = /^(?=.{1,900}$)<?[!#-'*+\-./0-9=?A-Z^-~]+@[!#-'*+\-./0-9=?A-Z^-~[\]]+>?$/;

/** What is wrong with a header, or null. */
export function headerFault(name: string, value: string): string | null {
  if (!token.test(name)) return `"${name}" is not a header name`;
  if (refused.test(name)) return `the header ${name} cannot be set`;
  if (/[\r\n\0]/.test(value)) return `the value of ${name} must be free of CR, LF and NUL`;
  if (value.length > maxValueLength)
    return `the value of ${name} must have at most ${maxValueLength} characters`;
  if (!value.isWellFormed()) return `the value of ${name} must be well-formed Unicode`;
  return replacementFault(name.toLowerCase(), value);
}

function replacementFault(name: string, value: string): string | null {
  switch (name) {
    case 'date':
      return Number.isNaN(Date.parse(value)) ? 'the value of Date must be a date' : null;
    case 'message-id':
      return messageId.test(value) ? null : 'the value of Message-ID must be one <id@domain>';
    case 'reply-to':
    case 'sender':
      return parseMailbox(value) ? null : `the value of ${name} must be one address`;
    default:
      return null;
  }
}

/** Headers that come in ours' place, by lower-case name, and all the rest. Of one name in two cases the last counts. */
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
