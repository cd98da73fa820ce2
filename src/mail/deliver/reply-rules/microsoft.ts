/** Replies of Exchange, Microsoft 365 and Outlook.com, whose status codes are often misleading. */
import type { RuleEntry } from './reply-rule.ts';

export const microsoft: readonly RuleEntry[] = [
  {
    // Directory-based edge blocking: the recipient is not in the directory, although 5.4.1 means network and 5.7.1 policy.
    name: 'microsoft-no-such-recipient',
    phases: ['rcpt', 'data', 'dot'],
    text: /(?:Recipient address|All recipient addresses) rejected ?: Access denied\.? {0,3}(?:For more information see \S{1,100} )?(?:AS\(\d{6,12}\)|\[[^\]]{1,100}\.outlook\.com)/i,
    category: 'unknown_user',
    quotes: [
      '550 5.4.1 Recipient address rejected: Access denied. AS(201806281) [PR2FRA01FT009.eop-fra01.prod.protection.outlook.com]',
      '550 5.4.1 <kijitora@example.br>: Recipient address rejected: Access denied [BL2NAM02FT061.eop-nam02.prod.protection.outlook.com]',
    ],
  },
  {
    name: 'outlook-no-such-mailbox',
    phases: ['rcpt', 'data', 'dot'],
    text: /mailbox unavailable\.? (?:\(S\d{10}\)|\[[^\]]{1,100}\.outlook\.com)/i,
    category: 'unknown_user',
    quotes: [
      '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302)',
      '550 5.5.0 Requested action not taken: mailbox unavailable. [#.eop-nam12.prod.protection.outlook.com]',
    ],
  },
  {
    // Elsewhere, 5.1.10 means a null MX (RFC 7505).
    name: 'exchange-no-such-recipient',
    phases: ['rcpt', 'data', 'dot'],
    text: /RESOLVER\.ADR\.Recip(?:ient)?NotFound/i,
    category: 'unknown_user',
    quotes: [
      '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
      '550 5.1.1 RESOLVER.ADR.RecipNotFound; not found',
    ],
  },
  {
    name: 'exchange-known-senders-only',
    text: /RESOLVER\.RST\.(?:AuthRequired|NotAuthorized|SenderNotAuthenticatedFor)|not authenticated to send anonymous mail/i,
    category: 'policy',
    fault: 'recipient',
    quotes: [
      '550 5.7.1 RESOLVER.RST.AuthRequired; authentication required',
      '530 5.7.57 SMTP; Client was not authenticated to send anonymous mail during MAIL FROM',
    ],
  },
  {
    // learn.microsoft.com on "451 4.7.500-699 (ASxxx)": our address is throttled, whatever the words say.
    name: 'microsoft-rate',
    status: /^4\.7\.[56]\d\d$/,
    category: 'rate_limit',
    quotes: [
      '451 4.7.500 Access denied, please try again later.',
      '451 4.7.650 The mail server [192.0.2.25] has been temporarily rate limited due to IP reputation.',
      '451 4.7.500 Server busy. Please try again later from [192.0.2.2]. (AS761)',
    ],
  },
  {
    name: 'microsoft-blocked',
    text: /part of their network is on our block list|banned send(?:ing IP|er)|traffic not accepted from this IP|listed in Spamhaus\..{0,80}\(A?S8001\)/i,
    category: 'blocked',
    quotes: [
      "550 5.7.1 Unfortunately, messages from [3.21.133.245] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).",
      '550 5.7.606 Access denied, banned sending IP [192.0.2.225].',
      '550 5.7.511 Access denied, banned sender[1.2.3.4].',
      '550 5.7.1 Service unavailable, Helo domain is listed in Spamhaus. To request removal from this list see (S8001)',
    ],
  },
  {
    name: 'microsoft-authentication',
    status: /^5\.7\.(?:509|515)$/,
    category: 'auth',
    quotes: [
      '550 5.7.509 Access denied, sending domain [EXAMPLE.JP] does not pass DMARC verification and has a DMARC policy of reject.',
      "550 5.7.515 Access denied, sending domain NYAAAAN.EXAMPLE.JP doesn't meet the required authentication level.",
    ],
  },
];
