/**
 * Enhanced status codes: RFC 3463, RFC 7372 (authentication), RFC 7505 (null MX) and the IANA registry. Those that are
 * used with care come before the words of a reply, the others after: a mailbox said to be disabled may be unknown, an
 * unknown one may be a block, and 5.7.1 may be anything.
 */
import type { Rule } from './reply-rule.ts';

const recipientPhases = ['rcpt', 'data', 'dot'] as const;

export const clearStatuses: readonly Rule[] = [
  {
    // A refused STARTTLS says nothing of the mail, whatever its code.
    name: 'starttls-refused',
    phases: ['starttls'],
    category: 'tls',
    fault: 'infrastructure',
    quotes: ['454 4.7.0 TLS not available due to local problem'],
  },
  {
    name: 'status-mailbox-full',
    status: /^\d\.2\.2$/,
    category: 'mailbox_full',
    fault: 'recipient',
    quotes: [
      '552 5.2.2 <neko@nyaaan.example.org> Quota exceeded (mailbox for user is full)',
      "552 5.2.2 The recipient's inbox is out of storage space and inactive.",
    ],
  },
  {
    // X.4.14 is Exchange's.
    name: 'status-loop',
    status: /^\d\.4\.(?:6|14)$/,
    category: 'loop',
    fault: 'infrastructure',
    quotes: ['554 5.4.6 Too many hops'],
  },
  {
    // RFC 7372, and X.7.24, X.7.30 and X.7.32 as Gmail gives them.
    name: 'status-authentication',
    status: /^\d\.7\.(?:2[0-79]|30|32)$/,
    category: 'auth',
    fault: 'sender',
    quotes: [
      "550 5.7.26 Unauthenticated email from libsisimai.org is not accepted due to domain's DMARC policy.",
      '550 5.7.25 [192.0.2.202] The IP address sending this message does not have a PTR record setup',
      '450 4.7.25 Client host rejected: cannot find your hostname, [192.0.2.22]',
    ],
  },
  {
    // The registry's "mail flood detected".
    name: 'status-rate',
    status: /^\d\.7\.28$/,
    category: 'rate_limit',
    fault: 'sender',
    quotes: [
      '421 4.7.28 Gmail has detected this message exceeded its quota for sending messages with the same Message-ID:.',
    ],
  },
  {
    name: 'status-account-disabled',
    phases: recipientPhases,
    status: /^\d\.7\.13$/,
    category: 'mailbox_disabled',
    fault: 'recipient',
    quotes: ['525 5.7.13 Disabled recipient address'],
  },
];

export const statuses: readonly Rule[] = [
  {
    name: 'status-unknown-user',
    phases: recipientPhases,
    status: /^\d\.1\.[136]$/,
    category: 'unknown_user',
    fault: 'recipient',
    quotes: [
      '550 5.1.1 <user@example.com> recipient rejected',
      '553 5.1.3 The recipient address <address> is not a valid RFC 5321 address.',
    ],
  },
  {
    name: 'status-recipient-domain',
    phases: recipientPhases,
    status: /^\d\.1\.(?:2|10)$/,
    category: 'dns',
    fault: 'recipient',
    quotes: [
      "553 5.1.2 We weren't able to find the recipient domain.",
      '556 5.1.10 Recipient address has null MX',
    ],
  },
  {
    name: 'status-sender',
    status: /^\d\.1\.[78]$/,
    category: 'policy',
    fault: 'sender',
    quotes: ['553 5.1.7 The sender address address is not a valid RFC 5321 address.'],
  },
  {
    name: 'status-mailbox-disabled',
    phases: recipientPhases,
    status: /^5\.2\.1$/,
    category: 'mailbox_disabled',
    fault: 'recipient',
    quotes: [
      '550 5.2.1 The email account that you tried to reach is disabled.',
      '550 5.2.1 The email account that you tried to reach is inactive.',
    ],
  },
  {
    name: 'status-size',
    status: /^\d\.(?:2\.3|3\.4)$/,
    category: 'size',
    fault: 'content',
    quotes: [
      '552 5.2.3 Message length exceeds limit set by recipient',
      "552 5.2.3 Your message exceeded Google's message size limits.",
    ],
  },
  {
    name: 'status-mailbox',
    status: /^\d\.2\.\d+$/,
    category: 'unavailable',
    fault: 'recipient',
    signal: 'well',
    quotes: [
      '450 4.2.1 Please try again later. (#id-5.9.4)',
      '450 4.2.0 <example@comcast.net> - Recipient temporarily unavailable',
    ],
  },
  {
    // X.3.1 is a full disk, X.3.2 a server that takes no mail for now.
    name: 'status-system-busy',
    status: /^4\.3\.[12]$/,
    category: 'unavailable',
    fault: 'infrastructure',
    signal: 'throttled',
    quotes: ['451 4.3.2 Internal server error'],
  },
  {
    name: 'status-system',
    status: /^\d\.3\.\d+$/,
    category: 'unavailable',
    fault: 'infrastructure',
    quotes: [
      '451 4.3.5 <empfänger email>: Recipient address rejected: Server configuration problem.',
      '421 4.3.0 Upstream error',
    ],
  },
  {
    name: 'status-network',
    status: /^\d\.4\.\d+$/,
    category: 'network',
    fault: 'infrastructure',
    quotes: [
      '451 4.4.2 Timeout - closing connection.',
      '451 4.4.62 Mail sent to the wrong Office 365 region.',
    ],
  },
  {
    name: 'status-protocol',
    status: /^\d\.5\.\d+$/,
    category: 'protocol',
    fault: 'infrastructure',
    quotes: ['503 5.5.1 Bad sequence of commands.'],
  },
  {
    name: 'status-content',
    status: /^\d\.6\.\d+$/,
    category: 'content',
    fault: 'content',
    quotes: ['550 5.6.9 improper use of 8-bit data in message header', '552 5.6.0 Headers too large (3 max)'],
  },
  {
    name: 'status-policy',
    status: /^\d\.7\.\d+$/,
    category: 'policy',
    fault: 'sender',
    quotes: ['550 5.7.6 Failed to delivery', '550 5.7.9 Rejected'],
  },
];
