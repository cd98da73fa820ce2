/**
 * Finds the rule for a reply: the first that matches, specific rules before general ones. Providers' own texts come
 * first, then the status codes that all servers use carefully, then texts that many servers share, then status codes
 * about addresses, refusals that name nothing, the other status codes, which are often wrong, and last the three-digit
 * codes, which always match.
 */
import type { Phase, Reply } from '#platform/values/glossary.ts';
import { codes } from './basic-codes.ts';
import { addressStatuses, clearStatuses, otherStatuses } from './enhanced-statuses.ts';
import { generalRefusals } from './general-refusals.ts';
import { gmail } from './gmail.ts';
import { mailboxes } from './mailbox-words.ts';
import { mails } from './message-words.ts';
import { microsoft } from './microsoft.ts';
import { providers } from './other-providers.ts';
import { faultOf, type Rule } from './reply-rule.ts';
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
  ...addressStatuses,
  ...generalRefusals,
  ...otherStatuses,
  ...codes,
].map((rule) => ({ ...rule, fault: rule.fault ?? faultOf[rule.category] }));

/**
 * Addresses are removed from the text: "<spam@example.com>: no" is not about spam. Punctuation does not belong to them, so
 * that "not found:ann@example.com" and "ann@example.com...User unknown" keep their words.
 */
const addresses = /[^\s<>@:;,()[\]]{1,64}@(?:\.?[^\s<>@:;,().]{1,63}){1,127}/g;

export function ruleFor(phase: Phase, reply: Reply): Rule {
  const code = String(reply.code);
  const status = statusOf(reply);
  const text = reply.text
    .replace(addresses, '@')
    .replace(/[\u2018\u2019\u02bc\u00b4]/g, "'")
    // Names of programs: mailbox_quota_exceeded.
    .replace(/(?<=[A-Za-z])_(?=[A-Za-z])/g, ' ');
  return rules.find(
    (rule) =>
      (rule.phases === undefined || rule.phases.includes(phase)) &&
      (rule.code === undefined || rule.code.test(code)) &&
      (rule.status === undefined || rule.status.test(status ?? '')) &&
      (rule.text === undefined || rule.text.test(text)) &&
      !rule.unless?.test(text),
  )!;
}

/** Inside the text: as qmail writes it, "sorry (#5.1.1)", or in the reply of another host, "failed (ann: 550 5.2.1 …)". */
const statusInText = /(?:(?:^|\()#|[(: ]5\d\d[ -])([245]\.\d{1,3}\.\d{1,3})\b/;

/** The enhanced status code. */
export function statusOf(reply: Reply): string | null {
  return reply.enhanced ?? statusInText.exec(reply.text)?.[1] ?? null;
}
