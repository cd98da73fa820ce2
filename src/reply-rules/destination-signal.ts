/**
 * What a refusal tells of the destination itself, for its concurrency and its circuit. A host that judges this mail or
 * this mailbox works; one that says 421 or speaks of rates asks us to slow down; a greeting that is none is no service.
 */
import type { Reply, Signal } from '../glossary.ts';
import { statusOf } from './classify.ts';
import type { Category, Phase, Rule } from './reply-rule.ts';

/** About this mail or this mailbox, so about a host that works. */
const judgements: ReadonlySet<Category> = new Set([
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
  // Design section 4: fewer on 4.7.x, where it is not about the mail.
  const unspecific = rule.category === 'policy' || rule.category === 'blocked';
  if (unspecific && reply.code < 500 && statusOf(reply)?.startsWith('4.7.')) return 'throttled';
  if (judgements.has(rule.category)) return 'well';
  return rule.category === 'policy' && reply.code >= 500 ? 'well' : null;
}
