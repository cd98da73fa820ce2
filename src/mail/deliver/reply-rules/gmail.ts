/** Replies of Google, from support.google.com/a/answer/3726730 and from mail logs. */
import type { RuleEntry } from './reply-rule.ts';

export const gmail: readonly RuleEntry[] = [
  {
    // 5.2.1 means a disabled mailbox elsewhere; here the mailbox only gets too much mail.
    name: 'mailbox-rate',
    text: /is receiving mail (?:too quickly|at a rate that)|recipient thread limit exceeded|messages they can (?:send to this recipient|receive) per hour|recipient has exceeded message rate limit/i,
    category: 'rate_limit',
    fault: 'recipient',
    passes: true,
    signal: 'working',
    quotes: [
      '450 4.2.1 The user you are trying to contact is receiving mail too quickly.',
      '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents',
      '450 User is receiving mail too quickly',
      '554 5.2.121 The sender has exceeded the limit for the number of messages they can send to this recipient per hour.',
      '554 5.2.122 The recipient has exceeded their limit for the number of messages they can receive per hour.',
      '450 4.2.1 The recipient has exceeded message rate limit.',
      '432 4.3.2 STOREDRV.Deliver; recipient thread limit exceeded',
    ],
  },
  {
    name: 'gmail-unusual-rate',
    code: /^4/,
    text: /unusual (?:rate|amount) of (?:unsolicited )?mail/i,
    category: 'rate_limit',
    quotes: [
      '421 4.7.0 Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
      '421 4.7.28 Gmail has detected an unusual rate of mail originating from your SPF domain',
    ],
  },
  {
    name: 'gmail-blocked',
    text: /unusual rate of unsolicited mail|not in whitelist for RCPT domain|not authorized to send email directly to our servers/i,
    category: 'blocked',
    quotes: [
      '550 5.7.1 [104.248.27.183 1] Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
      '421 4.7.0 IP not in whitelist for RCPT domain, closing connection.',
      "550 7.7.1 The IP you're using to send mail is not authorized to send email directly to our servers.",
    ],
  },
  {
    name: 'gmail-try-later',
    code: /^4/,
    text: /^Try again later, closing connection/i,
    category: 'rate_limit',
    quotes: ['421 4.7.0 Try again later, closing connection.'],
  },
  {
    // We sent without TLS because a handshake had failed; the next attempt tries TLS again.
    name: 'tls-wanted',
    text: /TLS required for RCPT domain|wasn't sent over a TLS connection|Must issue a STARTTLS command|STARTTLS is required/i,
    category: 'tls',
    passes: true,
    quotes: [
      '421 4.7.0 TLS required for RCPT domain, closing connection.',
      '530 5.7.0 Must issue a STARTTLS command first.',
      '451 5.7.3 STARTTLS is required to send mail',
      "421 4.7.29 Your email has been rate limited because this message wasn't sent over a TLS connection.",
    ],
  },
  {
    name: 'gmail-spam',
    text: /likely unsolicited mail|suspicious due to the nature of the content/i,
    category: 'spam',
    quotes: [
      '550 5.7.1 [62.210.82.129 12] Our system has detected that this message is likely unsolicited mail.',
      '421 4.7.0 This message is suspicious due to the nature of the content or the links within.',
    ],
  },
];
