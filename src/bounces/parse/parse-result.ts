/** What a mail that came in says, once it is read. Plain data: it crosses from the thread that reads to the others. */
import type { Outcome } from '../../glossary.ts';
import type { DmarcReport } from '../reports/dmarc-report.ts';
import type { TlsReport } from '../reports/tls-report.ts';

export type ParsedReturn =
  | Failure
  /** Still trying, they say (RFC 3464 section 2.3.3, "delayed"). */
  | Delay
  /** It arrived, they say: delivered, relayed, expanded. */
  | { is: 'arrived'; format: string }
  /** Written by a program for its owner: out of office, a ticket number, a read receipt. */
  | { is: 'automatic'; format: string }
  | Complaint
  | { is: 'report'; report: Report }
  /** Nothing that we know how to read; people may. */
  | { is: 'letter' };

export interface Failure {
  is: 'failed';
  /** The rule that read it. */
  format: string;
  /** Whom it names, as it has them: for people; the delivery is found by where the bounce arrived. */
  recipient: string | null;
  /** The host that says so. */
  reportedBy: string | null;
  bounce: { type: 'hard' | 'soft' } & Pick<Outcome, 'diagnostic'> & {
      category: string;
      fault: NonNullable<Outcome['fault']>;
    };
  /** The rule about replies that judged its words. */
  rule: string;
}

export interface Delay {
  is: 'delayed';
  format: string;
  words: string;
  reportedBy: string | null;
}

export interface Complaint {
  is: 'complaint';
  format: string;
  /** RFC 5965 section 7.3: abuse, fraud, virus, other … */
  feedbackType: string;
  reportedBy: string | null;
  /** What in it may name a delivery of ours, the likeliest first; to be believed only where its key is right. */
  tokens: Token[];
}

/**
 * The part before the @ of what looks like a return path or a Message-ID, or what looks like the token of a tracking link.
 */
export type Token = { kind: 'return-path' | 'message-id' | 'open' | 'click'; text: string };

export type Report = DmarcReport | TlsReport;
