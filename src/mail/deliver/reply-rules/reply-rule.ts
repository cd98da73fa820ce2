/**
 * The type of a reply rule: what it matches, what it says about the refusal, and the real replies that it was made
 * from. The rules are data in the files of this folder; classify.ts has their order. No rule decides whether a delivery
 * bounces: outcome.ts does, and asks a rule only whether a 5xx is known to be temporary.
 */
import type { Fault, Phase, Signal } from '#platform/values/glossary.ts';

/**
 * The kinds of failure that a reply can report (front/api/email/schema.ts documents them), and whose fault each is unless a rule
 * says otherwise.
 */
export const faultOf = {
  unknown_user: 'recipient',
  mailbox_disabled: 'recipient',
  mailbox_full: 'recipient',
  greylisting: 'infrastructure',
  rate_limit: 'sender',
  /** The content was judged to be spam. */
  spam: 'content',
  /** Our address or domain is on a blocklist or has a bad reputation, whatever the mail and its recipient. */
  blocked: 'sender',
  policy: 'sender',
  /** SPF, DKIM, DMARC, reverse DNS. */
  auth: 'sender',
  content: 'content',
  size: 'content',
  /** A domain that does not exist or accepts no mail: the recipient's, or with fault `sender` the sender's. */
  dns: 'recipient',
  network: 'infrastructure',
  tls: 'infrastructure',
  protocol: 'infrastructure',
  loop: 'infrastructure',
  unavailable: 'infrastructure',
  other: 'infrastructure',
} as const satisfies Record<string, Fault>;

export type Category = keyof typeof faultOf;

/** A rule matches if all its conditions hold. */
export interface RuleEntry {
  /** The explanation in `email why`. */
  name: string;
  /** The phases that it applies to; absent: all. */
  phases?: readonly Phase[];
  /** Matches the three-digit code. */
  code?: RegExp;
  /** Matches the enhanced status code (RFC 3463); '' if there is none. */
  status?: RegExp;
  /**
   * Matches the text. No pattern may need more than linear time: a hostile reply is long
   * (test/mail/deliver/reply-rules/replies.test.ts).
   */
  text?: RegExp;
  /** Must not match the text: words that are known to be truer than the status. */
  unless?: RegExp;
  category: Category;
  /** Only if it differs from `faultOf`. */
  fault?: Fault;
  /** Overrides the bounce type that category and fault imply (outcome.ts). */
  bounce?: 'hard' | 'soft';
  /** Known to be temporary although the code says 5xx. */
  passes?: true;
  /** Overrides the signal that the category implies (outcome.ts). */
  signal?: Signal;
  /** The beginnings of real replies that it was made from; each has its source in test/fixtures/replies. */
  quotes: readonly string[];
}

export type Rule = RuleEntry & { fault: Fault };
