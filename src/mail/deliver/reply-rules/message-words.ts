/** Words about the message and the server, and last the unspecific ones. */
import { refused, together } from './near.ts';
import type { RuleEntry } from './reply-rule.ts';

const content = together(
  String.raw`\b(?:content|body|text|words?|urls?|links?|files?|extensions?|attachments?|html)\b`,
  refused,
  4,
);

const size = together(
  String.raw`\b(?:(?:message|mail|data|content|body)[- ]?)?(?:size|length)\b|\bmailsize\b`,
  String.raw`(?:exceed(?:s|ed|ing)?|over|limit|maximum|too (?:big|large|long)|larger|greater)\b`,
  5,
);

export const mails: readonly RuleEntry[] = [
  {
    name: 'dangerous-content',
    text: /virus|\bmacros?\b|\b(?:unsafe|malicious|infected) |phishing|(?:illegal|dangerous) (?:file|attachment|extension)|attachment filter|(?:restricted|unacceptable|disallowed) (?:attachment|content)|\b(?:sensitive|offensive|forbidden) words?\b|HTML tag unacceptable|maximum attachment count|message is banned|potential security issue/i,
    category: 'content',
    quotes: [
      '552 5.7.0 This message was blocked because its content presents a potential security issue.',
      '550 Virus Detected; Content Rejected',
    ],
  },
  {
    name: 'malformed',
    text: /\b(?:RFC(?: ?\d{3,4})?|standards?) complian|\bcompl(?:y|iant) with (?:\S{1,20} ){0,3}(?:RFC|standards?)|malformed|duplicate header|header error|headers? (?:is|are) (?:missing|invalid)|missing a valid|with multiple addresses in From|line limit exceeded|line (?:is )?too long|(?:maximum (?:allowed )?line|line|boundary) length\b|(?:contains|has) NUL (?:characters|bytes)/i,
    category: 'content',
    quotes: [
      '550 5.7.1 This message is not RFC 5322 compliant.',
      "554 Transaction failed: Duplicate header 'DKIM-Signature'.",
      '554 5.7.9 Header error',
      '500 Line limit exceeded',
    ],
  },
  {
    name: 'spam',
    text: /\bspam(?:mer)?\b|rejected as bulk|\bbulk ?mail rejected|rejected by DCC|\bmessage scored \d|\bUBE\b|unsolicited|junk ?mail|rejected by rspamd/i,
    category: 'spam',
    quotes: [
      '554 5.7.0 Reject, id=20025-09 - SPAM',
      '550 5.7.1 Message content rejected, UBE, id=00000-22-225',
      '554 5.7.1 Spam message rejected',
      '550 spam detected',
      '554 5.7.1 rejected by rspamd filter',
    ],
  },
  {
    name: 'content-refused',
    text: new RegExp(
      String.raw`${content}|mail data refused|(?:without|no|missing) (?:[\w-]{1,30}:? )?(?:field|header)\b|invalid (?:header|structure)|message filtered`,
      'i',
    ),
    category: 'content',
    quotes: [
      '500 5.6.1 Message content rejected',
      '550 5.2.0 Message Filtered',
      '554 5.7.1 Matched map: FORBIDDEN_FILE_EXTENSION',
    ],
  },
  {
    name: 'too-big',
    text: new RegExp(`(?:message|e-?mail|attachment) (?:is )?too (?:large|big|long)|${size}`, 'i'),
    category: 'size',
    quotes: [
      '552 message is too long.',
      '552 Message size exceeds the allowed size for this account (10485760)',
    ],
  },
  {
    // Postfix also says this if one of its filters has failed or asked for a delay.
    name: 'temporary-trouble',
    code: /^4/,
    text: /^Service unavailable - try again later|service is currently unavailable|Temporary server error/i,
    category: 'unavailable',
    quotes: [
      '451 4.7.1 Service unavailable - try again later',
      '451 4.7.0 Temporary server error. Please try again later. PRX4',
      '451 4.7.1 Sorry, the service is currently unavailable.',
    ],
  },
  {
    name: 'server-busy',
    code: /^4/,
    text: /(?:server|too|agent) busy|insufficient (?:disk space|system (?:storage|resources))|resources (?:temporarily )?unavailable|service temporarily refused|queue quota exceeded/i,
    category: 'unavailable',
    signal: 'throttled',
    quotes: [
      '421 4.4.5 Server busy, try again later.',
      '452 4.3.1 Insufficient system storage',
      '451 4.7.700 PFA agent busy, please try again.',
      '451 example.yahoo.com Resources temporarily unavailable.',
    ],
  },
  {
    // RFC 7504: this is about the host and all its mailboxes, not about this recipient.
    name: 'takes-no-mail',
    text: /(?:host|server) does not accept mail/i,
    category: 'unavailable',
    quotes: ['550 Host does not accept mail'],
  },
  {
    // A 5xx that says "later" is in doubt, and doubt means deferred.
    name: 'try-later',
    code: /^5/,
    text: /(?:try|retry)(?: again)? later|essayer plus tard/i,
    category: 'unavailable',
    passes: true,
    quotes: ['550 Requested action not taken: mailbox unavailable Failure sending mail. Try again later'],
  },
  {
    name: 'policy',
    text: /polic(?:y|ies)|security regulations|access denied|(?:not|n't|'nt) want (?:to receive )?(?:your|this) (?:e-?)?(?:mail|message)|will not accept (?:delivery of )?(?:this|your) (?:message|mail)/i,
    category: 'policy',
    quotes: [
      '554 5.7.9 Message not accepted for policy reasons.',
      '550 Denied by policy',
      '554 5.7.1 <kijitora@exmaple.ch>: Recipient address rejected: Access denied',
    ],
  },
];
