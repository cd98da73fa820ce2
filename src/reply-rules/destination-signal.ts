/**
 * What a refusal says about the destination itself, for its concurrency and its circuit. A host that refuses this mail
 * or this mailbox works; a 421 or a rate limit asks us to slow down; a refusal instead of a greeting is an outage.
 */
import type { Reply, Signal } from '../glossary.ts';
import { statusOf } from './classify.ts';
import type { Category, Phase, Rule } from './reply-rule.ts';

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

export function signalOfRefusal(phase: Phase, reply: Reply, rule: Rule): Signal {
  if (rule.signal !== undefined) return rule.signal;
  if (rule.category === 'greylisting' || rule.category === 'tls') return null;
  if (rule.category === 'rate_limit' || reply.code === 421) return 'throttled';
  if (phase === 'greeting') return 'dead';
  // A 4.7.x that is not about this mail asks us to slow down.
  const unspecific = rule.category === 'policy' || rule.category === 'blocked';
  if (unspecific && reply.code < 500 && statusOf(reply)?.startsWith('4.7.')) return 'throttled';
  if (aboutThisMail.has(rule.category)) return 'well';
  return rule.category === 'policy' && reply.code >= 500 ? 'well' : null;
}
