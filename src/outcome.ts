/**
 * THE table: from what was seen to delivered, deferred or bounced, and whether another host may be tried.
 *
 * Everyone else reports facts; only this file judges. Doubt means deferred: a delivery bounces on a clear, permanent
 * word of the other side alone (a 5xx reply to a command of the mail transaction, or a DNS answer that the domain
 * takes no mail), never on silence, on DNS failure or on something that is not SMTP.
 */
import type { Fault, Reply, Verdict } from './nouns.ts';

/** What a reply answered, in the order of a session. `dot` is the end of the message. */
export type Phase = 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'data' | 'dot' | 'quit';

/** How one conversation, or the way to it, ended. */
export type Ending =
  | { kind: 'accepted'; reply: Reply }
  | { kind: 'refused'; phase: Phase; reply: Reply }
  | { kind: 'unreachable'; detail: string }
  | { kind: 'lost'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'timeout'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'not-smtp'; phase: Phase; detail: string; afterDot: boolean }
  | { kind: 'tls-failed'; detail: string }
  | { kind: 'too-big'; detail: string }
  | { kind: 'no-smtputf8'; detail: string }
  | { kind: 'null-mx'; detail: string }
  | { kind: 'no-mail-host'; detail: string }
  | { kind: 'dns-failed'; detail: string }
  | { kind: 'private-address'; detail: string }
  | { kind: 'interrupted'; detail: string; afterDot: boolean }
  | { kind: 'internal'; detail: string; afterDot: boolean };

export interface Judgement {
  verdict: Verdict;
  /** The other side has not spoken for all its hosts: go on to the next one. */
  tryNextHost: boolean;
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

/** Endings without a reply. */
const table: Record<Exclude<Ending['kind'], 'accepted' | 'refused'>, Row> = {
  // Nothing answered, or the line went dead before the message was out: another host may do better.
  unreachable: defer('network', 'infrastructure', true),
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
  // SERVFAIL, REFUSED, a timeout, a host name without address: not known, so ask again.
  'dns-failed': defer('dns', 'infrastructure', false),
  'private-address': defer('policy', 'infrastructure', false, 'local'),
  interrupted: defer('interrupted', 'infrastructure', false, 'local'),
  internal: defer('internal', 'infrastructure', false, 'local'),
};

export function judge(ending: Ending): Judgement {
  if (ending.kind === 'accepted') return delivered(ending.reply);
  const row = ending.kind === 'refused' ? refusal(ending.phase, ending.reply) : table[ending.kind];
  // After the final dot the message may have been taken. Offering it to the next host would make sure of a
  // duplicate; waiting lets the other side's own duplicate suppression work.
  const possibleDuplicate = 'afterDot' in ending && ending.afterDot;
  const { tryNextHost, ...verdict } = row;
  return {
    verdict: { ...verdict, possibleDuplicate, diagnostic: diagnosticOf(ending) },
    tryNextHost: tryNextHost && !possibleDuplicate,
  };
}

function delivered(reply: Reply): Judgement {
  return {
    verdict: {
      outcome: 'delivered',
      category: null,
      fault: null,
      bounce: null,
      origin: 'remote',
      diagnostic: replyText(reply),
      possibleDuplicate: false,
    },
    tryNextHost: false,
  };
}

function refusal(phase: Phase, reply: Reply): Row {
  const permanent = reply.code >= 500 && reply.code <= 599;
  const inTransaction = phase === 'mail' || phase === 'rcpt' || phase === 'data' || phase === 'dot';
  // A 5xx greeting or EHLO speaks for the host, not for the mailbox (RFC 5321 section 3.1): the next one may serve.
  // 521 and 556 of RFC 7504 say so of the host too.
  if (!permanent || !inTransaction) return { ...defer(...classOf(reply, 'unavailable'), true) };
  // The code says permanent, the enhanced code says not: doubt.
  if (reply.enhanced !== null && !reply.enhanced.startsWith('5'))
    return defer(...classOf(reply, 'other'), true);
  // RFC 5321 section 4.5.3.1.10: 552 to RCPT was once "too many recipients", and is to be read as 452.
  if (reply.code === 552 && phase === 'rcpt' && reply.enhanced === null) {
    return defer('mailbox_full', 'recipient', true);
  }
  const aboutMailbox = phase === 'rcpt' && mailboxRefusals.has(reply.code);
  const [category, fault] = classOf(reply, aboutMailbox ? 'unknown_user' : 'other');
  return bounce(category, fault, hardCategories.has(category) ? 'hard' : 'soft');
}

/** RFC 5321 section 4.2.3. The other codes are about the session, the command or the whole transaction. */
const mailboxRefusals = new Set([550, 551, 553]);

/** Bounces that say the recipient will never work; every other refusal is about this mail, or about today. */
const hardCategories = new Set(['unknown_user', 'mailbox_disabled', 'dns']);

/** Enhanced status codes (RFC 3463 and the IANA registry) by subject and detail, the most specific first. */
const categories: [RegExp, string, Fault][] = [
  [/^\d\.1\.[0136]$/, 'unknown_user', 'recipient'],
  [/^\d\.1\.(2|10)$/, 'dns', 'recipient'],
  [/^\d\.1\.[78]$/, 'policy', 'sender'],
  [/^\d\.2\.1$/, 'mailbox_disabled', 'recipient'],
  [/^\d\.2\.2$/, 'mailbox_full', 'recipient'],
  [/^\d\.(2\.3|3\.4)$/, 'size', 'content'],
  [/^\d\.2\.4$/, 'other', 'recipient'],
  [/^\d\.3\.1$/, 'mailbox_full', 'infrastructure'],
  [/^\d\.3\.[0-9]+$/, 'unavailable', 'infrastructure'],
  [/^\d\.4\.[0-9]+$/, 'network', 'infrastructure'],
  [/^\d\.5\.[0-9]+$/, 'protocol', 'infrastructure'],
  [/^\d\.6\.[0-9]+$/, 'content', 'content'],
  [/^\d\.7\.(2[0-9]|30)$/, 'auth', 'sender'],
  [/^\d\.7\.[0-9]+$/, 'policy', 'sender'],
];

function classOf(reply: Reply, otherwise: string): [category: string, fault: Fault] {
  if (/gr[ea]y-?list/i.test(reply.text)) return ['greylisting', 'infrastructure'];
  const known = categories.find(([pattern]) => reply.enhanced !== null && pattern.test(reply.enhanced));
  if (known) return [known[1], known[2]];
  return [otherwise, otherwise === 'unknown_user' ? 'recipient' : 'infrastructure'];
}

export function replyText(reply: Reply): string {
  return [reply.code, reply.enhanced, reply.text].filter((part) => part !== null && part !== '').join(' ');
}

function diagnosticOf(ending: Exclude<Ending, { kind: 'accepted' }>): string {
  return ending.kind === 'refused' ? replyText(ending.reply) : ending.detail;
}
