/**
 * Finds the SMTP reply that the text of a bounce quotes: its code, its enhanced status code, its text, and the phase (RCPT,
 * DATA …) that it answered. Without a code, the reply gets one that fits its status, so that mail/deliver/reply-rules/ can
 * classify it like a reply in a session.
 */

import type { Phase, Reply } from './glossary.ts';
import { printableReply } from './reply.ts';

export interface Diagnostic {
  phase: Phase;
  reply: Reply;
  /** The text to show to people, without a code that was added here. */
  words: string;
}

const longestWords = 1000;

const said =
  '(?:said|says|saying|error|reply|response|reason|code|because of|' +
  '(?:returned|answered|replied|responded|reported|failed|refused|rejected|bounced)(?: with)?(?: (?:the )?(?:error|code|status))?)' +
  '[ :=]{1,3}';
const rest = String.raw`[ -]{1,3}(?=\S)(?<text>[^\n]*)`;
const enhanced = String.raw`(?<enhanced>[245]\.\d{1,3}\.\d{1,3})(?![.\d])`;
const code = String.raw`(?<code>[245][0-5]\d)`;

/**
 * An SMTP reply in other text: with both codes it may be anywhere; with the three digits alone, only at the beginning of a
 * line or after words that usually precede a reply.
 */
const quotedReplies = [
  new RegExp(String.raw`(?:^|[\s:;,>("'#-])${code}[ -]{1,2}#?${enhanced}(?:${rest})?`),
  new RegExp(String.raw`(?:^[ \t-]*|[:;>("'-]\s{0,2}|\b${said})${code}${rest}`, 'im'),
];
const anyStatus = /(?:^|[\s(#:;[<-])#?(?<status>[245]\.\d{1,3}\.\d{1,3})(?![.\d])/;

/**
 * `status`: the report's own field (RFC 3464 section 2.3.4), if there is one. `context`: the report's text for people, which
 * often names the command that was answered. `isPermanent`: whether a failure without any code is.
 */
export function readDiagnostic(
  diagnostic: string,
  {
    status = null,
    context = '',
    isPermanent = true,
  }: { status?: string | null; context?: string; isPermanent?: boolean },
): Diagnostic {
  const text = printableReply(diagnostic).trim();
  const inWords = squeeze(text.includes('\n') ? joinReply(text) : text);
  const quoted = findReply(inWords);
  const phase = phaseOf(`${inWords}\n${context}`);
  const known = quoted?.enhanced ?? precise(status) ?? anyStatus.exec(inWords)?.groups?.status ?? status;
  if (quoted) {
    const reply = { code: Number(quoted.code), enhanced: known, text: squeeze(quoted.text ?? '') };
    return { phase, reply, words: cut(quoted.enhanced ? inWords : withStatus(inWords, quoted, known)) };
  }
  const digits = known ? Number(known[0]) * 100 + 50 : isPermanent ? 550 : 450;
  const words = [precise(known), inWords].filter((part) => part && !inWords.startsWith(`${part} `)).join(' ');
  return {
    phase,
    reply: { code: digits, enhanced: known, text: inWords },
    words: cut(words || inWords || known || ''),
  };
}

/** Null for X.0.0, which says nothing that the three digits do not. */
function precise(status: string | null): string | null {
  return status === null || /^\d\.0\.0$/.test(status) ? null : status;
}

interface QuotedReply {
  code: string;
  /** The position at which the code begins. */
  at: number;
  enhanced: string | undefined;
  text: string | undefined;
}

function findReply(text: string): QuotedReply | undefined {
  for (const pattern of quotedReplies) {
    const found = pattern.exec(text);
    if (!found) continue;
    const { code, enhanced, text: after } = found.groups!;
    return { code: code!, at: found.index + found[0].indexOf(code!), enhanced, text: after };
  }
  return undefined;
}

/** The words with the report's status: after the code that it belongs to, or before the words if the code contradicts it. */
function withStatus(words: string, { code, at }: QuotedReply, status: string | null): string {
  if (precise(status) === null || words.includes(status!)) return words;
  if (status![0] !== code[0]) return `${status} ${words}`;
  const end = at + code.length;
  return `${words.slice(0, end)} ${status}${words.slice(end)}`;
}

/** Joins a reply of several lines, "550-5.1.1 No such\n550 5.1.1 user", to one line that has its codes once. */
function joinReply(text: string): string {
  const all = text.split('\n').map((line) => line.trim());
  const at = Math.max(
    all.findIndex((line) => findReply(line)),
    0,
  );
  const first = findReply(all[at]!)?.code;
  if (!first) return squeeze(text);
  const repeatedCode = new RegExp(`^${first}(?:[ -](?:[245]\\.\\d{1,3}\\.\\d{1,3})?[ ]*|$)`);
  return [all[at], ...all.slice(at + 1).map((line) => line.replace(repeatedCode, ''))].join(' ');
}

/** The phase that was answered, by the words of Postfix, Exim, qmail, Gmail and similar servers; the first match counts. */
const phases: [RegExp, Phase][] = [
  [/in reply to (?:the )?MAIL FROM|after (?:pipelined )?MAIL FROM|sender was rejected/i, 'mail'],
  [/in reply to (?:the )?RCPT TO|after (?:pipelined )?RCPT|does not like recipient/i, 'rcpt'],
  [
    /in reply to (?:the )?end of DATA|after (?:pipelined )?(?:sending )?(?:end of )?data|after I sent the message/i,
    'dot',
  ],
  [/in reply to (?:the )?DATA|failed on DATA command/i, 'data'],
  [/RCPT TO/i, 'rcpt'],
];

function phaseOf(words: string): Phase {
  // If unknown: 'dot', the phase in which codes alone are classified most carefully.
  return phases.find(([pattern]) => pattern.test(words))?.[1] ?? 'dot';
}

function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function cut(text: string): string {
  return text.length > longestWords ? `${text.slice(0, longestWords)}…` : text;
}
