/** Words about the mail and the server, and last those that say little. */
import type { Rule } from './reply-rule.ts';

export const mails: readonly Rule[] = [
  {
    name: 'dangerous-content',
    text: /virus|illegal attachment|potential security issue|FORBIDDEN_FILE_EXTENSION/i,
    category: 'content',
    fault: 'content',
    quotes: [
      '552 5.7.0 This message was blocked because its content presents a potential security issue.',
      '550 Virus Detected; Content Rejected',
      '554 5.7.1 Matched map: FORBIDDEN_FILE_EXTENSION',
    ],
  },
  {
    name: 'malformed',
    text: /not RFC (?:5322 )?compliant|malformed|duplicate header|header error|missing a valid|with multiple addresses in From|line limit exceeded/i,
    category: 'content',
    fault: 'content',
    quotes: [
      '550 5.7.1 This message is not RFC 5322 compliant.',
      "554 Transaction failed: Duplicate header 'DKIM-Signature'.",
      '554 5.7.9 Header error',
      '500 Line limit exceeded',
    ],
  },
  {
    name: 'spam',
    text: /\bspam\b|\bUBE\b|unsolicited|junkmail|rejected by rspamd/i,
    category: 'spam',
    fault: 'content',
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
    text: /content (?:rejected|denied|restrictions)|banned content|message filtered/i,
    category: 'content',
    fault: 'content',
    quotes: ['500 5.6.1 Message content rejected', '550 5.2.0 Message Filtered'],
  },
  {
    name: 'too-big',
    text: /message (?:is )?too (?:large|big|long)|message size exceeds/i,
    category: 'size',
    fault: 'content',
    quotes: [
      '552 message is too long.',
      '552 Message size exceeds the allowed size for this account (10485760)',
    ],
  },
  {
    // Also what Postfix says where a filter of its own has failed or asked for a delay.
    name: 'temporary-trouble',
    code: /^4/,
    text: /^Service unavailable - try again later|service is currently unavailable|Temporary server error/i,
    category: 'unavailable',
    fault: 'infrastructure',
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
    fault: 'infrastructure',
    signal: 'throttled',
    quotes: [
      '421 4.4.5 Server busy, try again later.',
      '452 4.3.1 Insufficient system storage',
      '451 4.7.700 PFA agent busy, please try again.',
      '451 example.yahoo.com Resources temporarily unavailable.',
    ],
  },
  {
    // RFC 7504: of the host, so of every mailbox there, and not of the one that was asked for.
    name: 'takes-no-mail',
    text: /(?:host|server) does not accept mail/i,
    category: 'unavailable',
    fault: 'infrastructure',
    quotes: ['550 Host does not accept mail'],
  },
  {
    // 5xx, and yet "later": doubt.
    name: 'try-later',
    code: /^5/,
    text: /(?:try|retry)(?: again)? later|essayer plus tard/i,
    category: 'unavailable',
    fault: 'infrastructure',
    passes: true,
    quotes: ['550 Requested action not taken: mailbox unavailable Failure sending mail. Try again later'],
  },
  {
    name: 'policy',
    text: /polic(?:y|ies)|access denied|recipient preferences|rejected by (?:recipients|this user)|message not allowed|envelope blocked|blocked senders/i,
    category: 'policy',
    fault: 'sender',
    quotes: [
      '554 5.7.9 Message not accepted for policy reasons.',
      '550 Denied by policy',
      '554 5.7.1 <kijitora@exmaple.ch>: Recipient address rejected: Access denied',
      '550 Mail is rejected by recipients',
    ],
  },
];
