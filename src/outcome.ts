/**
 * THE table: from what was seen to delivered, deferred or bounced, and whether another host may be tried.
 *
 * Everyone else reports facts; only this file judges. What a refusal is about, the rules in reply-rules/ say. Doubt means
 * deferred: a delivery bounces on a clear, permanent word of the other side alone (a 5xx reply to a command of the mail
 * transaction, or a DNS answer that the domain takes no mail), never on silence, on DNS failure or on something that
 * is not SMTP.
 */
import type { Fault, Outcome, Reply, Signal } from './glossary.ts';
import { ruleFor, statusOf } from './reply-rules/classify.ts';
import { signalOfRefusal } from './reply-rules/destination-signal.ts';
import type { Category, Phase, Rule } from './reply-rules/reply-rule.ts';
import { retryAfterMs } from './reply-rules/retry-after.ts';

export type { Phase } from './reply-rules/reply-rule.ts';

/** How one conversation, or the way to it, ended. */
export type SessionResult =
  | { kind: 'accepted'; reply: Reply }
  | { kind: 'refused'; phase: Phase; reply: Reply }
  | { kind: 'unreachable'; detail: string }
  /** None of our own addresses could serve, or there was no socket: the host was not asked. */
  | { kind: 'no-source'; detail: string }
  | { kind: 'lost'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'timeout'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'not-smtp'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'tls-failed'; detail: string }
  /** A policy (DANE, MTA-STS) or the sender demands TLS that the host does not give: nothing was sent. */
  | { kind: 'tls-required'; detail: string }
  | { kind: 'too-big'; detail: string }
  | { kind: 'no-smtputf8'; detail: string }
  | { kind: 'null-mx'; detail: string }
  | { kind: 'no-mail-host'; detail: string }
  | { kind: 'dns-failed'; detail: string }
  | { kind: 'private-address'; detail: string }
  /** We did not try: the destination is suspended, or its circuit is open. */
  | { kind: 'withheld'; detail: string }
  | { kind: 'interrupted'; detail: string; afterDot: boolean }
  | { kind: 'internal'; detail: string; afterDot: boolean };

export interface Classification {
  outcome: Outcome;
  /** The other side has not spoken for all its hosts: go on to the next one. */
  tryNextHost: boolean;
  /** What it tells of the destination itself. */
  signal: Signal;
}

type Row = Pick<Outcome, 'outcome' | 'category' | 'fault' | 'bounce' | 'origin'> & { tryNextHost: boolean };

const defer = (category: string, fault: Fault, tryNextHost: boolean, origin: Outcome['origin'] = 'remote') =>
  ({ outcome: 'deferred', category, fault, bounce: null, origin, tryNextHost }) as const;

const bounce = (
  category: string,
  fault: Fault,
  type: 'hard' | 'soft',
  origin: Outcome['origin'] = 'remote',
) => ({ outcome: 'bounced', category, fault, bounce: type, origin, tryNextHost: false }) as const;

/** Endings without a reply. */
const table: Record<Exclude<SessionResult['kind'], 'accepted' | 'refused'>, Row> = {
  // Nothing answered, or the line went dead before the message was out: another host may do better.
  unreachable: defer('network', 'infrastructure', true),
  // Another host may have an address of the family that our addresses are of.
  'no-source': defer('network', 'infrastructure', true, 'local'),
  lost: defer('network', 'infrastructure', true),
  timeout: defer('network', 'infrastructure', true),
  'not-smtp': defer('protocol', 'infrastructure', true),
  'tls-failed': defer('tls', 'infrastructure', true),
  // RFC 1870 section 6.3: a message over the announced size is not worth sending; all hosts of a domain agree on it.
  'too-big': bounce('size', 'content', 'soft'),
  // RFC 6531 section 3.2: an internationalized address cannot pass a host without SMTPUTF8. Another host may have it.
  'no-smtputf8': { ...bounce('protocol', 'recipient', 'hard'), tryNextHost: true },
  // RFC 5321 section 5.1: a domain that does not exist, or has neither MX nor address, is a permanent error.
  'no-mail-host': bounce('dns', 'recipient', 'hard'),
  // RFC 7505 section 3.
  'null-mx': bounce('dns', 'recipient', 'hard'),
  // SERVFAIL, REFUSED, a timeout, a host name without address: not known, so ask again. RFC 7672 section 2.1.2: a host
  // whose TLSA records are not known is passed over; what is known of the next one stands.
  'dns-failed': defer('dns', 'infrastructure', true),
  // RFC 8461 section 5, RFC 7672 section 2.2: delay, never fall back. Another host may do as the policy says.
  'tls-required': defer('tls', 'infrastructure', true),
  withheld: defer('withheld', 'infrastructure', false, 'local'),
  'private-address': defer('policy', 'infrastructure', false, 'local'),
  interrupted: defer('interrupted', 'infrastructure', false, 'local'),
  internal: defer('internal', 'infrastructure', false, 'local'),
};

export function classify(result: SessionResult): Classification {
  if (result.kind === 'accepted') return delivered(result.reply);
  if (result.kind === 'refused') return refused(result.phase, result.reply);
  // After the final dot the message may have been taken. Offering it to the next host would make sure of a
  // duplicate; waiting lets the other side's own duplicate suppression work.
  const possibleDuplicate = 'afterDot' in result && result.afterDot;
  const { tryNextHost, ...outcome } = table[result.kind];
  const { kind: rule, detail: diagnostic } = result;
  return {
    outcome: { ...outcome, possibleDuplicate, diagnostic, rule, retryAfterMs: null },
    tryNextHost: tryNextHost && !possibleDuplicate,
    signal: signalOf(result),
  };
}

function delivered(reply: Reply): Classification {
  return {
    outcome: {
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
    signal: 'well',
  };
}

function refused(phase: Phase, reply: Reply): Classification {
  const rule = ruleFor(phase, reply);
  const { tryNextHost, ...outcome } = bounces(phase, reply, rule)
    ? bounce(rule.category, rule.fault, rule.bounce ?? hardness(rule.category, rule.fault))
    : defer(rule.category, rule.fault, true);
  return {
    outcome: {
      ...outcome,
      possibleDuplicate: false,
      diagnostic: replyText(reply),
      rule: rule.name,
      retryAfterMs: outcome.outcome === 'deferred' ? retryAfterMs(reply.text) : null,
    },
    tryNextHost,
    signal: signalOfRefusal(phase, reply, rule),
  };
}

/**
 * A refusal that came back by mail, after a host had taken the message: nobody tries again, whatever the digits say, but
 * only a permanent word says that the recipient will never work.
 */
export function classifyReturned(phase: Phase, reply: Reply) {
  const rule = ruleFor(phase, reply);
  const { category, fault } = rule;
  const type = bounces(phase, reply, rule) ? (rule.bounce ?? hardness(category, fault)) : ('soft' as const);
  return { type, category, fault, rule: rule.name };
}

/** Whether a refusal is final: a 5xx of the mail transaction of which nothing says that it passes. */
function bounces(phase: Phase, reply: Reply, rule: Rule): boolean {
  // A 5xx greeting or EHLO speaks for the host, not for the mailbox (RFC 5321 section 3.1): the next one may serve.
  // 521 and 556 of RFC 7504 say so of the host too.
  const inTransaction = phase === 'mail' || phase === 'rcpt' || phase === 'data' || phase === 'dot';
  const permanent = reply.code >= 500 && reply.code <= 599;
  // The code says permanent, the enhanced code says not: doubt.
  const agreed = statusOf(reply)?.startsWith('5') ?? true;
  return inTransaction && permanent && agreed && !rule.passes;
}

/** Categories of bounces that say the recipient will never work; all others are about this mail, or about today. */
const lasting: ReadonlySet<Category> = new Set(['unknown_user', 'mailbox_disabled', 'dns']);

/** A bounce for anything that is not the recipient's fault must never suppress the recipient. */
function hardness(category: Category, fault: Fault): 'hard' | 'soft' {
  return fault === 'recipient' && lasting.has(category) ? 'hard' : 'soft';
}

/** What an ending without a reply tells of the destination. */
function signalOf(result: Exclude<SessionResult, { kind: 'accepted' | 'refused' }>): Signal {
  switch (result.kind) {
    case 'unreachable':
    case 'dns-failed':
      return 'dead';
    case 'lost':
    case 'timeout':
    case 'not-smtp':
      return result.phase === 'greeting' ? 'dead' : null;
    // They answered EHLO; this mail is not for them.
    case 'too-big':
    case 'no-smtputf8':
      return 'well';
    default:
      return null;
  }
}

export function replyText(reply: Reply): string {
  return [reply.code, reply.enhanced, reply.text].filter((part) => part !== null && part !== '').join(' ');
}
