/**
 * Finds the rule that speaks of a reply: the first that matches, the specific before the general. Providers' own words
 * come first, then statuses that are used with care everywhere, then words that many servers share, then the rest of
 * the enhanced status codes, which are often given carelessly, and last the three digits, which always match.
 */
import type { Reply } from '../glossary.ts';
import { codes } from './basic-codes.ts';
import { clearStatuses, statuses } from './enhanced-statuses.ts';
import { gmail } from './gmail.ts';
import { mailboxes } from './mailbox-words.ts';
import { mails } from './message-words.ts';
import { microsoft } from './microsoft.ts';
import { providers } from './other-providers.ts';
import type { Phase, Rule } from './reply-rule.ts';
import { reputation } from './reputation-words.ts';
import { senders } from './sender-words.ts';

export const rules: readonly Rule[] = [
  ...gmail,
  ...microsoft,
  ...providers,
  ...clearStatuses,
  ...reputation,
  ...senders,
  ...mailboxes,
  ...mails,
  ...statuses,
  ...codes,
];

/** The words of an address are not the server's: "<spam@example.com>: no" says nothing of spam. */
const addresses = /[^\s<>@]{1,64}@[^\s<>@]{1,255}/g;

export function ruleFor(phase: Phase, reply: Reply): Rule {
  const code = String(reply.code);
  const status = statusOf(reply);
  const text = reply.text.replace(addresses, '@');
  return rules.find(
    (rule) =>
      (rule.phases === undefined || rule.phases.includes(phase)) &&
      (rule.code === undefined || rule.code.test(code)) &&
      (rule.status === undefined || (status !== null && rule.status.test(status))) &&
      (rule.text === undefined || rule.text.test(text)),
  )!;
}

/** The enhanced status code, also where it stands in the text as qmail and its kin put it: "sorry (#5.1.1)". */
export function statusOf(reply: Reply): string | null {
  return reply.enhanced ?? /(?:^|\()#([245]\.\d{1,3}\.\d{1,3})\b/.exec(reply.text)?.[1] ?? null;
}
