/** Words about the message and the server, and last the unspecific ones. */
import type { RuleEntry } from './reply-rule.ts';

export const mails: readonly RuleEntry[] = [
  {
    name: 'dangerous-content',
    text: /virus|(?:illegal|banned|forbidden|prohibited|blocked|dangerous) (?:file|attachment|extension)|attachments?(?: \S{1,80}){0,3} (?:is|are|was|were) (?:not (?:allowed|permitted|accepted)|banned|blocked|forbidden|prohibited|rejected)|attachment filter|(?:restricted|unacceptable|disallowed) (?:attachment|content)|words? in (?:the|your) message (?:is|are) blocked|HTML tag unacceptable|maximum attachment count|not accepting mail with attachments|message is banned|potential security issue|FORBIDDEN_FILE_EXTENSION/i,
    category: 'content',
    quotes: [
      '552 5.7.0 This message was blocked because its content presents a potential security issue.',
      '550 Virus Detected; Content Rejected',
      '554 5.7.1 Matched map: FORBIDDEN_FILE_EXTENSION',
    ],
  },
  {
    name: 'malformed',
    text: /not RFC (?:5322 )?compliant|malformed|duplicate header|header error|missing a valid|with multiple addresses in From|line limit exceeded|line (?:is )?too long|(?:maximum (?:allowed )?line|line|boundary) length\b|(?:contains|has) NUL (?:characters|bytes)|headers are not RFC/i,
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
    text: /\bspam\b|rejected as bulk|\bbulk ?mail rejected|rejected by DCC|\bmessage scored \d|\bUBE\b|unsolicited|junk ?mail|rejected by rspamd/i,
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
    text: /content (?:reject(?:ed)?\b|denied|restrictions)|banned content|mail data refused|without (?:to|from|date|subject|message-id):? (?:field|header)|invalid (?:header|structure)|message filtered/i,
    category: 'content',
    quotes: ['500 5.6.1 Message content rejected', '550 5.2.0 Message Filtered'],
  },
  {
    name: 'too-big',
    text: /message (?:is )?too (?:large|big|long)|message size exceed(?:s|ed)/i,
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
    text: /polic(?:y|ies)|access denied|administrative prohibition|blocked by the recipient|definitively does not want|will not accept (?:delivery of )?(?:this|your) (?:message|mail)|recipient preferences|rejected by (?:recipients|this user)|message not allowed|envelope blocked|blocked senders/i,
    category: 'policy',
    quotes: [
      '554 5.7.9 Message not accepted for policy reasons.',
      '550 Denied by policy',
      '554 5.7.1 <kijitora@exmaple.ch>: Recipient address rejected: Access denied',
      '550 Mail is rejected by recipients',
    ],
  },
];
