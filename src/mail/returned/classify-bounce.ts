/** Classifies the text of a bounce with the same rules as a reply in a session (outcome.ts, mail/deliver/reply-rules/). */
import { classifyBounce } from '#mail/deliver/outcome.ts';
import type { Diagnostic } from '#platform/values/diagnostic.ts';
import type { ReportedFailure } from './parse-result.ts';

interface Found {
  format: string;
  recipient: string | null;
  reportedBy: string | null;
  diagnostic: Diagnostic;
  isExpanded: boolean;
}

const longestName = 320;

/** The failed recipients of one report that are read. */
export const maxFailures = 20;

/** The host without a comment after it: "mx.example.org. (192.0.2.1, the server for the domain)". */
export function hostIn(name: string): string {
  return name.split(' ', 1)[0]!.replace(/\.$/, '').slice(0, longestName);
}

export function failure({ format, recipient, reportedBy, diagnostic, isExpanded }: Found): ReportedFailure {
  const { rule, isFromWords: _, ...classified } = classifyBounce(diagnostic.phase, diagnostic.reply);
  return {
    kind: 'failed',
    format,
    recipient: recipient?.slice(0, longestName) ?? null,
    reportedBy: reportedBy && hostIn(reportedBy),
    bounce: { ...classified, diagnostic: diagnostic.words || 'The report gives no reason.' },
    rule,
    ...(isExpanded && { isExpanded }),
  };
}

/** The failures of one report as one reading. */
export function oneOf([first, ...others]: ReportedFailure[]): ReportedFailure {
  return { ...first!, ...(others.length > 0 && { others }) };
}

/** Rules that words reach if they say nothing about the cause. */
const unspecific = new Set([
  'refused',
  'code-failed',
  'code-command',
  'code-mailbox',
  'status-protocol',
  'status-system',
]);

/** The same failure with the cause that the text for people gives, if the fields give none. */
export function withCauseIn(text: string, found: ReportedFailure): ReportedFailure {
  if (!unspecific.has(found.rule)) return found;
  const lines = text.split('\n').map((line) => line.trim());
  const causeOf = (words: string) => {
    const { isFromWords, ...cause } = classifyBounce('dot', { code: 550, enhanced: null, text: words });
    return isFromWords && !unspecific.has(cause.rule) ? cause : null;
  };
  const line = lines.find((words) => causeOf(words) !== null);
  // The words of a cause may be on two lines.
  const words = line ?? lines.join(' ').slice(0, 2000);
  const cause = causeOf(words);
  if (cause === null) return found;
  const { rule, ...bounce } = cause;
  const diagnostic =
    line === undefined ? found.bounce.diagnostic : `${found.bounce.diagnostic}: ${line.slice(0, 500)}`;
  return { ...found, bounce: { ...bounce, diagnostic }, rule };
}
