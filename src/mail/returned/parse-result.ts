/** The results of parsing a returned mail. Plain data, because the parser thread sends them to the main thread. */
import type { Verdict } from '#platform/values/glossary.ts';
import type { AggregateReport } from './aggregate-report.ts';

export type ParseResult =
  | ReportedFailure
  /** The host is still retrying (RFC 3464 section 2.3.3, "delayed"). */
  | Delay
  /** The mail was delivered, relayed or expanded. */
  | { kind: 'arrived'; format: string }
  /** Automatic mail: out of office, a ticket number, a read receipt. */
  | { kind: 'automatic'; format: string }
  | Complaint
  | { kind: 'report'; report: AggregateReport }
  | Letter;

/** None of these; kept for people to read. */
export interface Letter {
  kind: 'letter';
  /** Why a mail to an address for reports could not be read as one. */
  why?: string;
}

export interface ReportedFailure {
  kind: 'failed';
  /** The rule that recognised it. */
  format: string;
  /**
   * The address that failed, as the report names it (its final recipient); null if it names none. The address that the
   * report came to identifies the delivery, whose own recipient may be another one (failed-recipient.ts).
   */
  recipient: string | null;
  /** Present if the server says that it made the failed address of ours: an alias, a list. */
  isExpanded?: true;
  /** The failures of further addresses in the same report. */
  others?: ReportedFailure[];
  /** The reporting host. */
  reportedBy: string | null;
  bounce: { type: 'hard' | 'soft' } & Pick<Verdict, 'diagnostic'> & {
      category: string;
      fault: NonNullable<Verdict['fault']>;
    };
  /** The rule in mail/deliver/reply-rules/ that classified it. */
  rule: string;
}

export interface Delay {
  kind: 'delayed';
  format: string;
  words: string;
  reportedBy: string | null;
}

export interface Complaint {
  kind: 'complaint';
  format: string;
  /** RFC 5965 section 7.3: abuse, fraud, virus, other … */
  feedbackType: string;
  reportedBy: string | null;
  /** May identify a delivery of ours, the most likely first; must be verified with our key. */
  tokens: Token[];
}

/** The local part of something like a return path or a Message-ID, or something like the token of a tracking link. */
export type Token = { kind: 'return-path' | 'message-id' | 'open' | 'click'; text: string };
