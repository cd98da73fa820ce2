/** Classifies the text of a bounce with the same rules as a reply in a session (outcome.ts, reply-rules/). */
import { classifyBounce } from '../outcome.ts';
import type { Diagnostic } from './parse/diagnostic.ts';
import type { Failure } from './parse/parse-result.ts';

interface Found {
  format: string;
  recipient: string | null;
  reportedBy: string | null;
  diagnostic: Diagnostic;
}

const longestName = 320;

/** The host without a comment after it: "mx.example.org. (192.0.2.1, the server for the domain)". */
export function hostIn(name: string): string {
  return name.split(' ', 1)[0]!.replace(/\.$/, '').slice(0, longestName);
}

export function failure({ format, recipient, reportedBy, diagnostic }: Found): Failure {
  const { rule, ...classified } = classifyBounce(diagnostic.phase, diagnostic.reply);
  return {
    is: 'failed',
    format,
    recipient: recipient?.slice(0, longestName) ?? null,
    reportedBy: reportedBy && hostIn(reportedBy),
    bounce: { ...classified, diagnostic: diagnostic.words || 'The report gives no reason.' },
    rule,
  };
}
