/**
 * What a rule about replies is: what it looks at, what it says of the refusal, and the real replies that it was made
 * from. The rules themselves are data, in the files beside this one; classify.ts has their order. No rule decides
 * whether a delivery bounces: outcome.ts does, and asks a rule only whether a 5xx is known to pass.
 */
import type { Fault, Signal } from '../glossary.ts';

/** What a reply answered, in the order of a session. `dot` is the end of the message. */
export type Phase = 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'data' | 'dot' | 'quit';

/** The kinds of trouble that a reply can tell of; api/email/schema.ts has them for the public. */
export type Category =
  | 'unknown_user'
  | 'mailbox_disabled'
  | 'mailbox_full'
  | 'greylisting'
  | 'rate_limit'
  /** The content was judged to be spam. */
  | 'spam'
  /** Our address, domain or reputation is on somebody's list, whatever the mail says and whoever it is for. */
  | 'blocked'
  | 'policy'
  /** SPF, DKIM, DMARC, reverse DNS. */
  | 'auth'
  | 'content'
  | 'size'
  /** A domain that does not exist or takes no mail: the recipient's, or by its fault the sender's. */
  | 'dns'
  | 'network'
  | 'tls'
  | 'protocol'
  | 'loop'
  | 'unavailable'
  | 'other';

/** A rule speaks where everything holds that it asks for. */
export interface Rule {
  /** What operators read in `email why`. */
  name: string;
  /** The phases that it speaks of; all where absent. */
  phases?: readonly Phase[];
  /** Of the three digits. */
  code?: RegExp;
  /** Of the enhanced status code (RFC 3463). */
  status?: RegExp;
  /** Of the text. No pattern may need more than linear time: a hostile reply is long (test/reply-rules/replies.test.ts). */
  text?: RegExp;
  category: Category;
  fault: Fault;
  /** Where a bounce is not what its category and fault make it (outcome.ts). */
  bounce?: 'hard' | 'soft';
  /** Its words are known to pass although the code says 5xx. */
  passes?: true;
  /** What it tells of the destination, where that is not what its category tells (destination-signal.ts). */
  signal?: Signal;
  /** The beginnings of real replies that it was made from; each has its source in test/fixtures/replies. */
  quotes: readonly string[];
}
