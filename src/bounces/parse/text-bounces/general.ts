/** Rules for bounces in no known format that are still clearly bounces. They come last. */
import type { TextBounceRule } from '../text-bounce-rule.ts';

export const general: readonly TextBounceRule[] = [
  {
    // Exim's header; providers that use Exim keep it even if they change the text.
    name: 'x-failed-recipients',
    header: ['x-failed-recipients', /\S@\S/],
    warning: /^Warning: message \S+ delayed|has not yet been delivered/im,
  },
  {
    name: 'reject-reason',
    opening: /^(?=reject reason: \S)/m,
    words: /^reject reason: (?<words>[^\n]{1,300})/m,
  },
  {
    // A sender that calls itself a mail system, and words about a returned mail.
    name: 'mailer-daemon',
    header: [
      'from',
      /\b(?:mailer-daemon|mail delivery (?:sub)?system|mail administrator|mdaemon|postmaster)\b/i,
    ],
    opening:
      /^(?=[\s\S]{0,6000}(?:undeliver|not (?:be )?delivered|unable to deliver|delivery (?:has )?fail|returned mail|could ?n[o']t deliver|failed permanently))/i,
    warning:
      /(?:has been delayed|not yet been delivered|will (?:keep|continue) (?:on )?trying|warning only|will be retried)/i,
  },
];
