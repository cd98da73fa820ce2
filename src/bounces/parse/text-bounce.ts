/**
 * Bounces that only people were meant to read: the rules in text-bounces/ know them by their words. Each rule is data; this
 * file finds the one that matches, cuts off the copy of our mail, and takes the words about the failure.
 */

import { failure } from '../classify-bounce.ts';
import { type Diagnostic, readDiagnostic } from './diagnostic.ts';
import type { ParsedReturn } from './parse-result.ts';
import type { ParsedMail } from './parsed-mail.ts';
import type { TextBounceRule } from './text-bounce-rule.ts';
import { general } from './text-bounces/general.ts';
import { groupware } from './text-bounces/groupware.ts';
import { servers } from './text-bounces/mail-servers.ts';
import { providers } from './text-bounces/mailbox-providers.ts';

/** The specific before the general. */
export const textBounceRules: readonly TextBounceRule[] = [
  ...groupware,
  ...providers,
  ...servers,
  ...general,
];

/** A bounce says what it has to say soon. */
const longestSpeech = 16 * 1024;

/** Where a copy of our mail begins, in the words of most. */
const copies =
  /^(?:-{2,}.{0,10}\b(?:original|copy|returned|undelivered|forwarded|header|message|text)\b.*|-+ ?Below this line.*|Received: .*|Return-Path: .*|Included is a copy .*|Original message follows.*|[ \t]*Below is a copy of .*)$/im;

/** Null: no bounce that we know. */
export function readTextBounce(mail: ParsedMail): ParsedReturn | null {
  const text = mail.text.slice(0, longestSpeech);
  const format = textBounceRules.find((one) => matches(one, mail, text));
  if (!format) return null;
  const { name } = format;
  if (format.warning?.test(text) || format.warning?.test(mail.header('subject'))) {
    return { is: 'delayed', format: name, words: mail.header('subject').slice(0, 300), reportedBy: null };
  }
  const speech = speechOf(format, text);
  const diagnostic = diagnosticOf(format, speech);
  const recipient = mail.header('x-failed-recipients').split(',', 1)[0]!.trim() || null;
  return failure({ format: name, recipient, reportedBy: null, diagnostic });
}

/** What is said to people in a format that we know; null where it is in no such format. */
export function wordsIn(mail: ParsedMail): string | null {
  const text = mail.text.slice(0, longestSpeech);
  const format = textBounceRules.find((one) => one.opening && matches(one, mail, text));
  return format ? pick(format, speechOf(format, text)) : null;
}

function matches({ header, opening }: TextBounceRule, mail: ParsedMail, text: string): boolean {
  if (header && !header[1].test(mail.header(header[0]))) return false;
  return !opening || opening.test(text);
}

/** What it says of the failure: after its opening, before the copy. */
function speechOf({ opening, end }: TextBounceRule, text: string): string {
  const found = opening?.exec(text);
  const from = text.slice(found ? found.index + found[0].length : 0);
  const stop = [end, copies]
    .map((pattern) => pattern?.exec(from)?.index ?? -1)
    .filter((at) => at > 0)
    .sort((a, b) => a - b)[0];
  return from.slice(0, stop);
}

function diagnosticOf(format: TextBounceRule, speech: string): Diagnostic {
  const status = format.means?.find(([pattern]) => pattern.test(speech))?.[1] ?? null;
  return readDiagnostic(pick(format, speech), { status, context: speech });
}

function pick({ words }: TextBounceRule, speech: string): string {
  const picked = words?.exec(speech)?.groups?.words ?? replyLines(speech) ?? firstWords(speech);
  // The end of a quotation whose beginning was left behind.
  return picked.includes('(') ? picked : picked.trim().replace(/['")]$/, '');
}

/** The lines of the first SMTP reply that is quoted. */
function replyLines(speech: string): string | null {
  const lines = speech.split('\n');
  const isReply = (line: string) => /(?:^|[\s:;>("'])[45]\d\d[ -]\S/.test(line);
  const start = lines.findIndex(isReply);
  if (start < 0) return null;
  const code = /(?:^|[\s:;>("'])([45]\d\d)[ -]\S/.exec(lines[start]!)![1]!;
  let end = start + 1;
  while (end < lines.length && lines[end]!.trim().startsWith(code)) end += 1;
  return lines.slice(start, end).join('\n');
}

/** Without the lines that only name the address. */
function firstWords(speech: string): string {
  const said = speech
    .split('\n')
    .filter((line) => !/^[ \t]*["'<]?[^\s<>"']{1,64}@[^\s<>"']{1,255}["'>]?[:,]?\s*$/.test(line));
  return said.join('\n').trim().slice(0, 600);
}
