/** Rules for text bounces of mailbox providers and mobile carriers without a delivery-status part. */
import type { TextBounceRule } from '#mail/returned/parse/text-bounce-rule.ts';

export const providers: readonly TextBounceRule[] = [
  {
    // Google, before it sent RFC 3464 reports; notices of delays use the same words.
    name: 'gmail-delay',
    opening:
      /^(?:This is an automatically generated Delivery Status Notification\s{1,4})?THIS IS A WARNING MESSAGE ONLY\.\s{1,4}YOU DO NOT NEED TO RESEND YOUR MESSAGE\./m,
    warning: /WARNING MESSAGE ONLY/,
  },
  {
    name: 'gmail',
    opening: /^Delivery to the following recipients? (?:has been delayed|failed permanently):/m,
    warning: /recipients? has been delayed/,
    words:
      /(?:error that the other server returned was|The response(?: from the remote server)? was|Technical details of permanent failure(?!:\s{1,4}Google tried)):\s{1,4}(?<words>[^\n]{1,500}(?:\n[^\n-][^\n]{0,300}){0,10})/,
    end: /^-{3,} (?:Original message|Message header follows)/m,
  },
  {
    name: 'gmail-html',
    opening:
      /^[ \t]*(?:Address not found|Message (?:not delivered|blocked|too large)|Recipient inbox full|Delivery incomplete)[ \t]*\n\s{0,8}Your message wasn't delivered to /m,
    warning: /Delivery incomplete/,
    words:
      /The response(?: from the remote server)? was:\s{1,4}(?<words>[^\n]{1,500}(?:\n[^\n-][^\n]{0,300}){0,10})/,
  },
  {
    name: 'yahoo',
    opening: /^Message from {1,2}yahoo\.(?:com|co\.jp)\.\n[^\n]*(?:\n[^\n<]+)*\n\s{0,8}/m,
    end: /^--- (?:Original message follows|Below this line)/m,
  },
  {
    name: 'yahoo-sorry',
    opening: /^Sorry, we were unable to deliver your message to the following address(?:es)?\.\s{1,4}/m,
    end: /^-{5,} (?:Forwarded|Original) message|^--- Below this line/im,
  },
  {
    name: 'aol',
    opening:
      /^Your message (?:has encountered delivery problems to|cannot be delivered to|to) the following (?:recipient\(s\)|recipients?):/m,
  },
  {
    // QQ and similar providers write in Chinese and quote the server's reply.
    name: 'qq',
    opening: /抱歉，?您的邮件被退回来了|很抱歉，您的邮件(?:未|没有)能?送达|无法发送到/,
    words:
      /(?:host [^\n]{1,200}said:|退信原因[:：]?|收件人邮件地址（[^）]{1,200}）)\s{0,4}(?<words>[^\n]{1,500})/,
    means: [
      [/不存在|无此用户/, '5.1.1'],
      [/已满|超出/, '5.2.2'],
    ],
  },
  {
    name: 'kddi',
    opening: /^[ \t]*Could not be delivered to: ?<[^\n>]{1,320}>\s{1,8}/m,
    means: [[/mailbox is full/i, '5.2.2']],
  },
  {
    // au, and other Japanese carriers with the same system.
    name: 'ezweb',
    opening:
      /^(?=Each of the following recipients was rejected by a remote\s{1,3}mail server|The user\(s\) account is (?:disabled|temporarily)|The following recipients did not receive this message:)/m,
    end: /^-{10,}$|^Received: /m,
    means: [
      [/account is disabled/i, '5.2.1'],
      [/temporarily (?:limited|over quota)/i, '5.2.2'],
    ],
  },
  {
    name: 'verizon-mms',
    opening: /^Message could not be delivered to mobile\.\s{1,4}/m,
    words: /Error: (?<words>[^\n]{1,300})/,
    end: /^Original Message:/m,
    means: [[/No valid recipients/i, '5.1.1']],
  },
  {
    name: 'vtext',
    opening: /^(?:Error|Action): (?=Message (?:was )?(?:failed|not delivered)|failed)/m,
  },
];
