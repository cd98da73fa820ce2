/**
 * Enhanced status codes: RFC 3463, RFC 7372 (authentication), RFC 7505 (null MX) and the IANA registry. `clearStatuses` are
 * those that servers use correctly, and are tried before the words of a reply. The others are tried after them, because
 * servers also send "disabled mailbox" for an unknown one, "unknown mailbox" for a block, and 5.7.1 for anything;
 * `addressStatuses` still before the general refusals (general-refusals.ts), which name no recipient.
 */
import type { RuleEntry } from './reply-rule.ts';
import { unknownUserWords } from './unknown-user-words.ts';

const recipientPhases = ['rcpt', 'data', 'dot'] as const;

export const clearStatuses: readonly RuleEntry[] = [
  {
    // A refused STARTTLS says nothing about the mail, whatever its code.
    name: 'starttls-refused',
    phases: ['starttls'],
    category: 'tls',
    quotes: ['454 4.7.0 TLS not available due to local problem'],
  },
  {
    name: 'status-mailbox-full',
    status: /^\d\.2\.2$/,
    unless: /gr[ae]y-?list/i,
    category: 'mailbox_full',
    quotes: [
      '552 5.2.2 <neko@nyaaan.example.org> Quota exceeded (mailbox for user is full)',
      "552 5.2.2 The recipient's inbox is out of storage space and inactive.",
    ],
  },
  {
    // Some servers send it for a full mailbox too.
    name: 'status-size',
    status: /^\d\.(?:2\.3|3\.4)$/,
    unless: /policy|quota/i,
    category: 'size',
    quotes: [
      '552 5.2.3 Message length exceeds limit set by recipient',
      "552 5.2.3 Your message exceeded Google's message size limits.",
    ],
  },
  {
    // Exchange sends X.4.14. Some servers send X.4.6 for a mailbox that does not exist.
    name: 'status-loop',
    status: /^\d\.4\.(?:6|14)$/,
    unless: unknownUserWords,
    category: 'loop',
    quotes: ['554 5.4.6 Too many hops'],
  },
  {
    // RFC 7372; Gmail also sends X.7.24, X.7.30 to X.7.32 and X.7.40, which are about SPF, DKIM and DMARC too.
    name: 'status-authentication',
    status: /^\d\.7\.(?:2[0-79]|3[0-2]|40)$/,
    category: 'auth',
    quotes: [
      "550 5.7.26 Unauthenticated email from libsisimai.org is not accepted due to domain's DMARC policy.",
      '550 5.7.25 [192.0.2.202] The IP address sending this message does not have a PTR record setup',
      '450 4.7.25 Client host rejected: cannot find your hostname, [192.0.2.22]',
    ],
  },
  {
    // The IANA registry calls it "mail flood detected".
    name: 'status-rate',
    status: /^\d\.7\.28$/,
    category: 'rate_limit',
    quotes: [
      '421 4.7.28 Gmail has detected this message exceeded its quota for sending messages with the same Message-ID:.',
    ],
  },
  {
    name: 'status-account-disabled',
    phases: recipientPhases,
    status: /^\d\.7\.13$/,
    category: 'mailbox_disabled',
    quotes: ['525 5.7.13 Disabled recipient address'],
  },
];

export const addressStatuses: readonly RuleEntry[] = [
  {
    name: 'status-unknown-user',
    phases: recipientPhases,
    status: /^\d\.1\.[136]$/,
    category: 'unknown_user',
    quotes: ['553 5.1.3 The recipient address <address> is not a valid RFC 5321 address.'],
  },
  {
    name: 'status-recipient-domain',
    phases: recipientPhases,
    status: /^\d\.1\.(?:2|10)$/,
    category: 'dns',
    quotes: [
      "553 5.1.2 We weren't able to find the recipient domain.",
      '556 5.1.10 Recipient address has null MX',
    ],
  },
  {
    name: 'status-sender',
    status: /^\d\.1\.[78]$/,
    category: 'policy',
    quotes: ['553 5.1.7 The sender address address is not a valid RFC 5321 address.'],
  },
  {
    name: 'status-mailbox-disabled',
    phases: recipientPhases,
    status: /^5\.2\.1$/,
    category: 'mailbox_disabled',
    quotes: [
      '550 5.2.1 The email account that you tried to reach is disabled.',
      '550 5.2.1 The email account that you tried to reach is inactive.',
    ],
  },
];

export const otherStatuses: readonly RuleEntry[] = [
  {
    name: 'status-mailbox',
    status: /^\d\.2\.\d+$/,
    category: 'unavailable',
    fault: 'recipient',
    signal: 'working',
    quotes: [
      '450 4.2.1 Please try again later. (#id-5.9.4)',
      '450 4.2.0 <example@comcast.net> - Recipient temporarily unavailable',
    ],
  },
  {
    // X.3.1: the disk is full. X.3.2: the server accepts no mail at the moment.
    name: 'status-system-busy',
    status: /^4\.3\.[12]$/,
    category: 'unavailable',
    signal: 'throttled',
    quotes: ['451 4.3.2 Internal server error'],
  },
  {
    name: 'status-system',
    status: /^\d\.3\.\d+$/,
    category: 'unavailable',
    quotes: [
      '451 4.3.5 <empfänger email>: Recipient address rejected: Server configuration problem.',
      '421 4.3.0 Upstream error',
    ],
  },
  {
    // RFC 3463: unable to route. Postfix, qmail and Exchange say it if the domain is not in the DNS.
    name: 'status-unroutable',
    phases: recipientPhases,
    status: /^5\.4\.4$/,
    category: 'dns',
    quotes: ['550 5.4.4 Invalid domain'],
  },
  {
    name: 'status-network',
    status: /^\d\.4\.\d+$/,
    category: 'network',
    quotes: [
      '451 4.4.2 Timeout - closing connection.',
      '451 4.4.62 Mail sent to the wrong Office 365 region.',
    ],
  },
  {
    name: 'status-protocol',
    status: /^\d\.5\.\d+$/,
    category: 'protocol',
    quotes: ['503 5.5.1 Bad sequence of commands.'],
  },
  {
    name: 'status-content',
    status: /^\d\.6\.\d+$/,
    category: 'content',
    quotes: ['550 5.6.9 improper use of 8-bit data in message header', '552 5.6.0 Headers too large (3 max)'],
  },
  {
    name: 'status-policy',
    status: /^\d\.7\.\d+$/,
    category: 'policy',
    quotes: ['550 5.7.6 Failed to delivery', '551 5.7.1 Domain not found'],
  },
];
