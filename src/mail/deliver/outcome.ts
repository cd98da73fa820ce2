/**
 * THE table: from a session's result to delivered, deferred or bounced, and whether the next host is tried.
 *
 * All other files report facts; only this file decides. The rules in mail/deliver/reply-rules/ say what a refusal is about. In
 * doubt a delivery is deferred: it bounces only on a clear, permanent answer (a 5xx reply to a command of the mail transaction,
 * or a DNS answer that the domain accepts no mail), never on silence, on a DNS failure or on bytes that are not SMTP.
 */

import { ruleFor, statusOf } from '#mail/deliver/reply-rules/classify.ts';
import type { Category, Rule } from '#mail/deliver/reply-rules/reply-rule.ts';
import { retryAfterMs } from '#mail/deliver/reply-rules/retry-after.ts';
import type { Fault, Phase, Reply, Signal, Verdict } from '#platform/values/glossary.ts';

/** How one SMTP session ended, or why there was none. */
export type SessionResult =
  | { kind: 'accepted'; reply: Reply }
  | { kind: 'refused'; phase: Phase; reply: Reply }
  | { kind: 'unreachable'; detail: string }
  /** None of our own addresses could be used, or the system had no socket: the host was not contacted. */
  | { kind: 'no-source'; detail: string }
  | { kind: 'lost'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'timeout'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'not-smtp'; phase: Phase; detail: string; afterDot: boolean }
  /**
   * The host offers STARTTLS, but no TLS came of it. `isTransient`: the cause may be an overload or a lost connection;
   * `mayBeOutdated`: the host may have failed because it gives only outdated TLS.
   */
  | { kind: 'tls-failed'; isTransient: boolean; mayBeOutdated: boolean; detail: string }
  /** A policy (DANE, MTA-STS) or the sender demands TLS that the host does not offer: no mail was sent. */
  | { kind: 'tls-required'; detail: string }
  | { kind: 'too-big'; detail: string }
  | { kind: 'no-smtputf8'; detail: string }
  /** The mail demands REQUIRETLS (RFC 8689), which the host does not offer. */
  | { kind: 'no-requiretls'; detail: string }
  | { kind: 'no-utf8-header'; detail: string }
  | { kind: 'no-8bitmime'; detail: string }
  | { kind: 'null-mx'; detail: string }
  | { kind: 'no-mail-host'; detail: string }
  | { kind: 'dns-failed'; detail: string }
  /** Our own DNS resolver does not answer, whatever the name. */
  | { kind: 'resolver-failed'; detail: string }
  | { kind: 'private-address'; detail: string }
  /** No attempt was made: the destination is suspended, or its circuit is open. */
  | { kind: 'withheld'; detail: string }
  /** Our addresses are new to the receiver and may send no more now (mail/deliver/warm-up.ts). */
  | { kind: 'put-off'; waitMs: number; detail: string }
  /** A rule of the operator bounces the mail to this domain. */
  | { kind: 'operator-bounce'; detail: string }
  | { kind: 'interrupted'; detail: string; afterDot: boolean }
  | { kind: 'internal'; detail: string; afterDot: boolean };

export interface Classification {
  verdict: Verdict;
  /** The result says nothing about the other hosts, so the next one is tried. */
  tryNextHost: boolean;
  /** Its evidence about the destination itself. */
  signal: Signal;
}

type Row = Pick<Verdict, 'outcome' | 'category' | 'fault' | 'bounce' | 'origin'> & { tryNextHost: boolean };

const defer = (category: string, fault: Fault, tryNextHost: boolean, origin: Verdict['origin'] = 'remote') =>
  ({ outcome: 'deferred', category, fault, bounce: null, origin, tryNextHost }) as const;

const bounce = (
  category: string,
  fault: Fault,
  type: 'hard' | 'soft',
  origin: Verdict['origin'] = 'remote',
) => ({ outcome: 'bounced', category, fault, bounce: type, origin, tryNextHost: false }) as const;

/** Results without a reply. */
const table: Record<Exclude<SessionResult['kind'], 'accepted' | 'refused'>, Row> = {
  // Nothing answered, or the connection was lost before the message was sent: another host may work.
  unreachable: defer('network', 'infrastructure', true),
  // Another host may have an address of a family that we have source addresses for.
  'no-source': defer('network', 'infrastructure', true, 'local'),
  lost: defer('network', 'infrastructure', true),
  timeout: defer('network', 'infrastructure', true),
  'not-smtp': defer('protocol', 'infrastructure', true),
  'tls-failed': defer('tls', 'infrastructure', true),
  // RFC 1870 section 6.3: a message over the announced size is not sent; the hosts of a domain have the same limit.
  'too-big': bounce('size', 'content', 'soft'),
  // RFC 6531 section 3.2: a host without SMTPUTF8 cannot accept an internationalized address. Another host may.
  'no-smtputf8': { ...bounce('protocol', 'recipient', 'hard'), tryNextHost: true },
  // RFC 8689 section 4.2.1: the mail must not go there. Another host of the domain may offer it; waiting does not help.
  'no-requiretls': { ...bounce('tls', 'infrastructure', 'soft'), tryNextHost: true },
  // RFC 6531 section 3.4: nor a message with one in its header. The recipient can get other mail.
  'no-utf8-header': { ...bounce('protocol', 'content', 'soft'), tryNextHost: true },
  // RFC 6152 section 3: a signed part of 8 bits (mail/compose/seven-bit.ts) can neither be converted nor be sent there.
  'no-8bitmime': { ...bounce('protocol', 'content', 'soft'), tryNextHost: true },
  // RFC 5321 section 5.1: a domain that does not exist, or has neither MX nor address, is a permanent error.
  'no-mail-host': bounce('dns', 'recipient', 'hard'),
  // RFC 7505 section 3.
  'null-mx': bounce('dns', 'recipient', 'hard'),
  // SERVFAIL, REFUSED, a timeout, a host name without an address: not known, so retry. RFC 7672 section 2.1.2: a host
  // whose TLSA records are not known is skipped; the next host may be used.
  'dns-failed': defer('dns', 'infrastructure', true),
  'resolver-failed': defer('resolver', 'infrastructure', true, 'local'),
  // RFC 8461 section 5, RFC 7672 section 2.2: delay, never fall back. Another host may meet the policy.
  'tls-required': defer('tls', 'infrastructure', true),
  withheld: defer('withheld', 'infrastructure', false, 'local'),
  'put-off': defer('withheld', 'infrastructure', false, 'local'),
  // Soft, because it says nothing about the address.
  'operator-bounce': bounce('withheld', 'infrastructure', 'soft', 'local'),
  'private-address': defer('policy', 'infrastructure', false, 'local'),
  interrupted: defer('interrupted', 'infrastructure', false, 'local'),
  internal: defer('internal', 'infrastructure', false, 'local'),
};

export function classify(result: SessionResult): Classification {
  if (result.kind === 'accepted') return delivered(result.reply);
  if (result.kind === 'refused') return refused(result.phase, result.reply);
  // After the final dot the message may have been accepted. Offering it to the next host could deliver it twice;
  // waiting lets the receiver's own duplicate suppression work.
  const possibleDuplicate = 'afterDot' in result && result.afterDot;
  const { tryNextHost, ...verdict } = table[result.kind];
  const { kind: rule, detail: diagnostic } = result;
  return {
    verdict: {
      ...verdict,
      possibleDuplicate,
      diagnostic,
      rule,
      retryAfterMs: 'waitMs' in result ? result.waitMs : null,
    },
    tryNextHost: tryNextHost && !possibleDuplicate,
    signal: signalOf(result),
  };
}

function delivered(reply: Reply): Classification {
  return {
    verdict: {
      outcome: 'delivered',
      category: null,
      fault: null,
      bounce: null,
      origin: 'remote',
      diagnostic: replyText(reply),
      possibleDuplicate: false,
      rule: null,
      retryAfterMs: null,
    },
    tryNextHost: false,
    signal: 'working',
  };
}

function refused(phase: Phase, reply: Reply): Classification {
  const rule = ruleFor(phase, reply);
  // A deferral always tries the next host, a rate limit on our address too: hosts count separately and may belong to
  // another provider. A host that shares the limit costs us one connection, and the signal still slows us down.
  const { tryNextHost, ...verdict } = bounces(phase, reply, rule)
    ? bounce(rule.category, rule.fault, rule.bounce ?? hardness(rule.category, rule.fault))
    : defer(rule.category, rule.fault, true);
  return {
    verdict: {
      ...verdict,
      possibleDuplicate: false,
      diagnostic: replyText(reply),
      rule: rule.name,
      retryAfterMs: verdict.outcome === 'deferred' ? retryAfterMs(reply.text) : null,
    },
    tryNextHost,
    signal: signalOfRefusal(phase, reply, rule),
  };
}

/**
 * A refusal that was returned by mail, after a host had accepted the message: it is never retried, whatever its code.
 * Only a permanent reply says that the recipient will never work, or words that say so and were the same until the end
 * ("450 user unknown", "DNS error: NXDOMAIN"). `isFromWords`: the text decided, not a code alone.
 */
export function classifyBounce(phase: Phase, reply: Reply) {
  const rule = ruleFor(phase, reply);
  const { category, fault } = rule;
  const isFromWords = rule.text !== undefined;
  const saysSo = isFromWords && hardness(category, fault) === 'hard' && !rule.passes;
  const isFinal = saysSo || bounces(phase, reply, rule);
  const type = isFinal ? (rule.bounce ?? hardness(category, fault)) : ('soft' as const);
  return { type, category, fault, rule: rule.name, isFromWords };
}

/** Whether a refusal is final: a 5xx in the mail transaction, unless a rule knows it to be temporary. */
function bounces(phase: Phase, reply: Reply, rule: Rule): boolean {
  // A 5xx greeting or EHLO reply is about the host, not about the mailbox (RFC 5321 section 3.1), and so are 521 and
  // 556 (RFC 7504): the next host may accept the mail.
  const inTransaction = phase === 'mail' || phase === 'rcpt' || phase === 'data' || phase === 'dot';
  const permanent = reply.code >= 500 && reply.code <= 599;
  // The code says permanent and the enhanced code says temporary: in doubt, temporary.
  const agreed = statusOf(reply)?.startsWith('5') ?? true;
  return inTransaction && permanent && agreed && !rule.passes;
}

/** Bounces that say the recipient will never work; all others are about this mail or a passing condition. */
const lasting: ReadonlySet<Category> = new Set(['unknown_user', 'mailbox_disabled', 'dns']);

/** A bounce for anything that is not the recipient's fault must never suppress the recipient. */
function hardness(category: Category, fault: Fault): 'hard' | 'soft' {
  return fault === 'recipient' && lasting.has(category) ? 'hard' : 'soft';
}

/** Refusals of this mail or this mailbox: the host works. */
const aboutThisMail: ReadonlySet<Category> = new Set([
  'unknown_user',
  'mailbox_disabled',
  'mailbox_full',
  'spam',
  'content',
  'size',
  'auth',
  'dns',
  'loop',
]);

/**
 * The evidence of a refusal about the destination, for its concurrency and its circuit: a 421 or a rate limit asks us to slow
 * down; a refusal instead of a greeting is an outage.
 */
function signalOfRefusal(phase: Phase, reply: Reply, rule: Rule): Signal {
  if (rule.signal !== undefined) return rule.signal;
  if (rule.category === 'greylisting' || rule.category === 'tls') return null;
  if (rule.category === 'rate_limit' || reply.code === 421) return 'throttled';
  if (phase === 'greeting') return 'dead';
  // A 4.7.x that is not about this mail asks us to slow down.
  const unspecific = rule.category === 'policy' || rule.category === 'blocked';
  if (unspecific && reply.code < 500 && statusOf(reply)?.startsWith('4.7.')) return 'throttled';
  if (aboutThisMail.has(rule.category)) return 'working';
  return rule.category === 'policy' && reply.code >= 500 ? 'working' : null;
}

/** The evidence of a result without a reply about the destination. */
function signalOf(result: Exclude<SessionResult, { kind: 'accepted' | 'refused' }>): Signal {
  switch (result.kind) {
    case 'unreachable':
    case 'dns-failed':
    case 'resolver-failed':
      return 'dead';
    case 'lost':
    case 'timeout':
    case 'not-smtp':
      return result.phase === 'greeting' ? 'dead' : null;
    // The host answered EHLO, so it works; only this mail does not suit it.
    case 'too-big':
    case 'no-smtputf8':
    case 'no-requiretls':
    case 'no-utf8-header':
    case 'no-8bitmime':
      return 'working';
    default:
      return null;
  }
}

export function replyText(reply: Reply): string {
  return [reply.code, reply.enhanced, reply.text].filter((part) => part !== null && part !== '').join(' ');
}
