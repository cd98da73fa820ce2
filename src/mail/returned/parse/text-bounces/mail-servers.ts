/** Rules for text bounces of mail servers: qmail, Exim, Sendmail, OpenSMTPD, Postfix and others. */
import type { TextBounceRule } from '#mail/returned/parse/text-bounce-rule.ts';

export const servers: readonly TextBounceRule[] = [
  {
    // QSBMF: qmail-send, netqmail, notqmail, s/qmail, and servers that use the same words.
    name: 'qmail',
    opening:
      /^[ \t]{0,8}Hi\. This is (?:the|deliver\w* program)\b[^\n]{1,200}\n[^\n]*(?:wasn't able|unable|not able) to deliver[^\n]*\n(?:(?!<)[^\n]+\n)*/m,
    end: /^--- (?:Below this line|Undelivered message follows|Enclosed)/m,
  },
  {
    name: 'exim-warning',
    opening:
      /^This message was created automatically by mail delivery software[^\n]*\n\s{0,8}A message that you (?:have )?sent has not yet been delivered/m,
    warning: /has not yet been delivered/,
  },
  {
    // Before 4.87, and providers that kept its words (GMX, 1&1, MXLogic, Zoho).
    name: 'exim',
    opening:
      /^This message was created automatically by (?:the )?mail delivery (?:software|system)[^\n]*\n\s{0,8}A message that you (?:have )?sent could not be delivered(?:[^\n:]*\n){0,3}[^\n:]*(?::[ \t]*)?\n/m,
    end: /^-{2,6} ?(?:This is a copy of|The (?:body|header)s? of the (?:original )?message)/m,
  },
  {
    // Sendmail before it supported RFC 3464; later also Active!Hunter and others.
    name: 'sendmail',
    opening:
      /^ *-{3,} The following addresses had (?:permanent (?:fatal|delivery) errors|delivery problems) -{3,}$/m,
    warning:
      /^ *-{3,} The following addresses had transient non-fatal errors|warning: could not send message for past/im,
    end: /^ *-{3,} (?:Original|Unsent|Message header) /im,
    words: /\(reason: (?<words>[^\n]{1,500}(?:\n {3,}[^\n(]{1,500}){0,8})/,
  },
  {
    name: 'sendmail-warning',
    opening: /^ *-{3,} The following addresses had transient non-fatal errors -{3,}$/m,
    warning: /transient non-fatal errors/,
  },
  {
    // Versions 5 and 8, if there is only the transcript.
    name: 'sendmail-transcript',
    opening: /^ *-{3,} Transcript of session follows -{3,}$/m,
    warning: /Warning: message still undelivered|will keep trying/i,
    end: /^ *-{3,} (?:Original|Unsent|Message header|Recipients of this)/im,
  },
  {
    name: 'opensmtpd-warning',
    opening: /This is the MAILER-DAEMON, please DO NOT REPLY to this e-?mail\.\s{1,8}A message is delayed/,
    warning: /A message is delayed/,
  },
  {
    name: 'opensmtpd',
    opening:
      /This is the MAILER-DAEMON, please DO NOT REPLY to this e-?mail\.\s{1,8}An error has occurred[^:]{1,200}:\s{1,8}/,
    end: /^ *Below is a copy of the original message/m,
  },
  {
    // Before 2.3 (2006), and later notices that were reduced to text.
    name: 'postfix',
    opening:
      /^ *This is the (?:Postfix|mail system|\S{1,40} (?:mail system|program)) (?:program )?at host [^\n]{1,200}\n/m,
    warning: /THIS IS A WARNING ONLY|message is delayed/i,
    words:
      /^<[^\n>]{1,320}>(?: \(expanded from [^\n)]{1,330}\))?: ?(?<words>[^\n]{1,1000}(?:\n {2,}[^\n]{1,500}){0,12})/m,
  },
  {
    // DragonFly Mail Agent (BSD, Debian).
    name: 'dma',
    opening:
      /^This is the DragonFly Mail Agent [^\n]{1,200}\n\s{0,8}There was an error delivering your mail to <[^\n>]{1,320}>\.\s{1,4}/m,
    end: /^(?:Message headers follow|Original message follows)\./m,
  },
  {
    // Smail 3 and its successors.
    name: 'smail',
    opening: /^\|-{3,} Failed addresses follow: -{3,}\|$/m,
    end: /^\|-{3,} Message /m,
  },
  {
    name: 'courier',
    opening:
      /^This is a delivery status notification from [^\n]{1,200}(?:\n[^\n]{0,200}){0,14}UNDELIVERABLE MAIL/m,
    words: /^<[^\n>]{1,320}>:\n(?<words>(?:[ \t]+[^\n]{1,500}\n){1,12})/m,
  },
  {
    name: 'communigate',
    opening: /^Failed to deliver to '[^\n']{1,320}'\n/m,
    words: /reports?:\n(?<words>[^\n]{1,500}(?:\n [^\n]{1,500}){0,6})/,
  },
  {
    name: 'hmailserver',
    opening: /^Your message did not reach some or all of the intended recipients\./m,
    words:
      /^[ \t]*(?:Error Type: [^\n]{1,100}\n)?(?<words>(?:Error (?:description|message)|Remote server \([^\n)]{1,100}\) issued an error)[^\n]{0,300}(?:\n[^\n]{1,300}){0,6})/im,
  },
  {
    name: 'mdaemon',
    opening:
      /The (?:attached|following) message had (?:PERMANENT|TRANSIENT) (?:fatal |non-fatal )?delivery (?:errors|failures?)/i,
    warning: /TRANSIENT non-fatal/i,
    words:
      /^(?:Reason|Failed address[^\n]{0,20}):[^\n]{0,330}\n(?<words>[^\n]{0,500}(?:\n[^\n-][^\n]{0,300}){0,8})/m,
  },
  {
    name: 'imail',
    opening:
      /^(?=(?:Unknown (?:user|host)|User mailbox exceeds allowed size|Invalid final delivery userid|undeliverable to|Delivery failed \d+ attempts)[ :])/m,
    end: /^Original message follows\./m,
  },
  {
    name: 'mailenable',
    opening:
      /^Message could not be delivered to some recipients\.\s{1,4}The following recipient\(s\) could not be reached:\s{1,4}/m,
    words: /Recipient: \[[^\n]{1,330}\]\n(?<words>[^\n]{1,500}(?:\n[^\n]{1,300}){0,4})/,
  },
  {
    // The format that LISTSERV reads and LSMTP writes.
    name: 'listserv',
    opening: /^--> Error description:\n/m,
    words: /^Error-Text: {1,4}(?<words>[^\n]{1,500}(?:\n[ \t]+[^\n]{1,500}){0,8})/m,
    end: /^Error-End:/m,
  },
  {
    // Dovecot's rejections, which have the report type of a read receipt.
    name: 'dovecot',
    opening: /^Your message (?:to <[^\n>]{1,320}> )?was automatically rejected:\s{1,4}/m,
  },
  {
    // Japanese providers.
    name: 'delivery-errors',
    opening: /^-{3,} ?The following addresses had delivery errors ?-{3,}\s{1,4}/m,
    warning: /^Warning\b.{0,20}could not send (?:mail|message) for past/i,
    words: /\[(?<words>[^\n\]]{1,300})\]/,
  },
  {
    name: 'james',
    opening: /^Error message below:\n/m,
    end: /^[ \t]*Message details:/m,
  },
];
