/**
 * Parses bounces that are plain text for people. Finds the rule in text-bounces/ that matches, cuts off the copy of our
 * mail, and extracts the description of the failure.
 */

import { failure, maxFailures, oneOf } from '#mail/returned/classify-bounce.ts';
import { general } from '#mail/returned/parse/text-bounces/general.ts';
import { groupware } from '#mail/returned/parse/text-bounces/groupware.ts';
import { servers } from '#mail/returned/parse/text-bounces/mail-servers.ts';
import { providers } from '#mail/returned/parse/text-bounces/mailbox-providers.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import { type Diagnostic, readDiagnostic } from '#platform/values/diagnostic.ts';
import { isAnswer } from './auto-reply.ts';
import { recipientsIn } from './named-recipient.ts';
import type { ParsedMail } from './parsed-mail.ts';
import type { TextBounceRule } from './text-bounce-rule.ts';

const knownFormats: readonly TextBounceRule[] = [...groupware, ...providers, ...servers];

/** The specific before the general. */
export const textBounceRules: readonly TextBounceRule[] = [...knownFormats, ...general];

/** A bounce describes the failure near its beginning. */
const maxTextLength = 16 * 1024;

/** The beginning of the copy of our mail, in the words that most servers use. */
const copies =
  /^(?:-{2,}.{0,10}\b(?:original|copy|returned|undelivered|forwarded|header|message|text)\b.*|-+ ?Below this line.*|Received: .*|Return-Path: .*|Included is a copy .*|Original message follows.*|[ \t]*Below is a copy of .*)$/im;

/** The host still tries, whatever the format and whatever else it says. */
const stillTrying =
  /\b(?:has been (?:delayed|postponed)|not yet been delivered|will (?:keep|continue) (?:on |to )?(?:try|attempt)|attempts will continue|warning only|will (?:be )?(?:automatically )?(?:retry|retried|reattempt|re-attempted)\b|will try again)/i;

/** Null if no rule matches. */
export function readTextBounce(mail: ParsedMail): ParseResult | null {
  const text = mail.text.slice(0, maxTextLength);
  const format = textBounceRules.find((one) => matches(one, mail, text));
  if (!format) return null;
  const { name } = format;
  const subject = mail.header('subject');
  const isWarning = (said: string) => format.warning?.test(said) || stillTrying.test(said);
  if (isWarning(beforeCopy(text)) || isWarning(subject)) {
    return { kind: 'delayed', format: name, words: subject.slice(0, 300), reportedBy: null };
  }
  const description = descriptionOf(format, text);
  // Some say it in the subject alone.
  const diagnostic = diagnosticOf(format, description.trim() === '' ? subject : description);
  const introduction = format.opening?.exec(text)?.[0] ?? '';
  const [recipient = null, ...others] = failedIn(mail, [description, introduction]);
  const isExpanded = saysExpanded(text);
  const found = failure({ format: name, recipient, reportedBy: null, diagnostic, isExpanded });
  return oneOf([found, ...others.map((other) => ({ ...found, recipient: other }))]);
}

/** From Exim's header, or the first of the texts that names any. */
function failedIn(mail: ParsedMail, texts: string[]): string[] {
  const inHeader = mail.header('x-failed-recipients').split(',', maxFailures);
  const named = inHeader.map((one) => one.trim()).filter((one) => one !== '');
  return (
    [named, ...texts.map((text) => recipientsIn(text, maxFailures))].find((list) => list.length > 0) ?? []
  );
}

/**
 * Whether the server says that it made the failed address of the one that we wrote to: Exim's "(generated from …)",
 * "(expanded from …)" of Postfix and Sendmail.
 */
export function saysExpanded(text: string): boolean {
  return /\((?:ultimately\s)?(?:generated|expanded)\s+from\b/i.test(beforeCopy(text.slice(0, maxTextLength)));
}

/**
 * The description of the failure in a known format; null if no rule with an `opening` matches. The general rules do not say
 * where the description ends, so that a company's notice below it would be read as the reason.
 */
export function wordsIn(mail: ParsedMail): string | null {
  const text = mail.text.slice(0, maxTextLength);
  const format = knownFormats.find((one) => one.opening && matches(one, mail, text));
  return format ? pick(format, descriptionOf(format, text)) : null;
}

function matches(
  { header, opening, fromNullSender, noAnswer }: TextBounceRule,
  mail: ParsedMail,
  text: string,
): boolean {
  if (fromNullSender && !mail.fromNullSender) return false;
  if (header && !header[1].test(mail.header(header[0]))) return false;
  if (opening && !opening.test(text)) return false;
  return !noAnswer || !isAnswer(mail);
}

/** Text for people without the copy of our mail. */
export const beforeCopy = (text: string): string => {
  const at = copies.exec(text)?.index ?? -1;
  return at > 0 ? text.slice(0, at) : text;
};

/** The text after the opening and before the copy of our mail. */
function descriptionOf({ opening, end }: TextBounceRule, text: string): string {
  const found = opening?.exec(text);
  const from = text.slice(found ? found.index + found[0].length : 0);
  const stop = [end, copies]
    .map((pattern) => pattern?.exec(from)?.index ?? -1)
    .filter((at) => at > 0)
    .sort((a, b) => a - b)[0];
  return from.slice(0, stop);
}

function diagnosticOf(format: TextBounceRule, description: string): Diagnostic {
  const status = format.means?.find(([pattern]) => pattern.test(description))?.[1] ?? null;
  return readDiagnostic(pick(format, description), { status, context: description });
}

function pick({ words }: TextBounceRule, description: string): string {
  const picked =
    words?.exec(description)?.groups?.words ?? replyLines(description) ?? firstWords(description);
  // Removes the end of a quotation whose beginning is not included.
  return picked.includes('(') ? picked : picked.trim().replace(/['")]$/, '');
}

/** A reply, and not the telephone number of a help desk. */
const quotedReply = /(?:^|[\s:;>("'#])([45]\d\d)[ -](?!\d{3}-\d{4})\S/;

/** The lines of the first quoted SMTP reply. Exim folds a long one, and indents the rest as much as its beginning. */
function replyLines(description: string): string | null {
  const lines = description.split('\n');
  const isReply = (line: string) => quotedReply.test(line);
  const start = lines.findIndex(isReply);
  if (start < 0) return null;
  const code = quotedReply.exec(lines[start]!)![1]!;
  const indent = /^[ \t]*/.exec(lines[start]!)![0];
  const isFolded = (line: string) =>
    indent !== '' && line.startsWith(indent) && line.trim() !== '' && !isReply(line);
  let end = start + 1;
  while (end < lines.length && (lines[end]!.trim().startsWith(code) || isFolded(lines[end]!))) end += 1;
  return lines.slice(start, end).join('\n');
}

/** Without lines that contain only an address. */
function firstWords(description: string): string {
  const described = description
    .split('\n')
    .filter((line) => !/^[ \t]*["'<]?[^\s<>"']{1,64}@[^\s<>"']{1,255}["'>]?[:,]?\s*$/.test(line));
  return described.join('\n').trim().slice(0, 600);
}
