/** Rules for text bounces of Exchange, Domino, GroupWise and the filters in front of such servers. */
import type { TextBounceRule } from '#mail/returned/parse/text-bounce-rule.ts';

export const groupware: readonly TextBounceRule[] = [
  {
    // Exchange 5.5 to 2003. The status is at the end: <mx.example.org #5.1.1 smtp;550 …>.
    name: 'exchange',
    opening: /^Your message\n(?:[^\n]{0,320}\n){1,14}?did not reach the following recipient\(s\):\s{1,4}/m,
    words: /^[ \t]+(?<words>The [^\n]{1,500}(?:\n[ \t]+[^\n]{1,500}){0,8})/m,
    means: [[/recipient name is not recognized|e-mail account does not exist/i, '5.1.1']],
  },
  {
    // Exchange 2007 and later, Microsoft 365, if the delivery-status part was lost on the way.
    name: 'exchange-365',
    opening:
      /^(?:Delivery has failed to these recipients or (?:distribution lists|groups)|Your message (?:to \S{1,320} couldn't be delivered|wasn't delivered|can't be delivered))/m,
    words:
      /(?:Remote Server returned|Error Details\s{1,4}(?:Reported )?Error|#(?= ?[245]\d\d ))[ :]{0,3}\s{0,3}['"]?(?<words>[^\n]{1,500})/i,
  },
  {
    name: 'exchange-delayed',
    opening:
      /^(?:Delivery is delayed to these recipients or (?:distribution lists|groups)|This is an automatically generated Delivery Status Notification\.\s{1,4}THIS IS A WARNING MESSAGE ONLY)/m,
    warning: /Delivery is delayed|WARNING MESSAGE ONLY/,
  },
  {
    name: 'domino',
    opening: /^[ \t]*was not delivered to:\s{1,4}[^\n]{1,330}\n\s{0,4}because:\s{1,4}/m,
    end: /^(?:Received: |To:|-{3,})/m,
    means: [[/not listed in (?:Domino Directory|public Name & Address Book)/i, '5.1.1']],
  },
  {
    // Lotus Notes, before it was called Domino.
    name: 'notes',
    opening: /^-{3,} Failure Reasons {1,4}-{3,}\s{1,4}/m,
    end: /^-{3,} Returned Message/m,
    means: [[/not listed in (?:Domino Directory|public Name & Address Book)|リストにありません/i, '5.1.1']],
  },
  {
    name: 'groupwise',
    opening: /^The message that you sent was undeliverable to the following:\s{1,4}/m,
    words: /\((?<words>[^\n()]{1,300})\)/,
  },
  {
    // Sun and Oracle Messaging Server, formerly iPlanet and PMDF.
    name: 'messaging-server',
    opening: /^Your message cannot be delivered to the following recipients:\s{1,4}/m,
    words:
      /Reason: (?<words>[^\n]{1,300}(?:\n\s{1,8}Diagnostic code: [^\n]{1,500}(?:\n\s{4,}[^\n:]{1,300}){0,4})?)/,
  },
  {
    name: 'ironport',
    opening:
      /^The following message to <[^\n>]{1,320}> was undeliverable\.\s{1,4}The reason for the problem:\s{1,4}/m,
  },
  {
    name: 'mailmarshal',
    opening: /^Could not be delivered because of\s{1,4}/m,
    end: /^[ \t]*The following recipients were affected/m,
  },
  {
    name: 'mailfoundry',
    opening: /^Delivery failed for the following reason:\s{1,4}/m,
    end: /^This has been a permanent failure/m,
  },
  {
    name: 'mimecast',
    opening: /^An email that you attempted to send to the following address could not be delivered:/m,
    words: /^Additional information follows :\s{1,4}-- (?<words>[^\n]{1,500}(?:\n[^\n]{1,300}){0,4})/m,
  },
  {
    name: 'messagelabs',
    opening: /^This is the mail delivery agent at messagelabs\.com\.\n[^\n]*\n/m,
    end: /^--- Below this line/m,
  },
  {
    name: 'interscan',
    opening: /^Sent <<< [^\n]{1,400}\n(?=Received >>> )/m,
    words: /^Received >>> (?<words>[^\n]{1,500})/m,
  },
  {
    name: 'm-filter',
    opening: /^-{5,}server message\n/m,
    end: /^-{5,}(?:original message|SMTP command)/m,
  },
];
