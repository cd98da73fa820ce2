/** Rules for bounces in no known format that are still clearly bounces. They come last. */
import type { TextBounceRule } from '#mail/returned/parse/text-bounce-rule.ts';

/** A mail was not delivered, in the words and languages of many servers. Near the beginning, before a copy of our mail. */
const failureWords = new RegExp(
  `^(?=[\\s\\S]{0,3000}(?:${[
    String.raw`undeliver|(?:not|n't|(?:un|not )able to|failed to)(?: yet)? (?:be(?:en)? )?deliver|del[ei]ver(?:y|ing)(?: \S{1,20}){0,5} (?:failed|failure|problems?|(?:was )?aborted)|delivery (?:failure|errors?)|non-delivery`,
    'returned mail|failed permanently|(?:trouble|problems?) delivering|rejected your (?:message|e-?mail)|failed recipients?|did not reach|returned permanent errors|rejected recipient|does not like recipient|remote host said:? [45]\\d\\d',
    'not a valid user|no such user|no mailbox here|user (?:unknown|not known)|addresses that were[ \\n]incorrectly constructed|has failed due to|has been postponed|was (?:automatically )?rejected',
    "n'a pas pu (?:etre|être)|n'ont pas pu (?:etre|être)|non remis|adresse .{0,80}n'existe pas|impossible de (?:remettre|distribuer|délivrer)",
    "non (?:è|e'|e) stat[oa] possibile|impossibile (?:recapitare|consegnare)|mancat[ao] (?:recapito|consegna)|non (?:è|e'|e) stat[oa] (?:recapitat|consegnat)",
    'nicht zugestellt|unzustellbar|nicht zustellbar|no se (?:pudo|ha podido) entregar|no (?:pudo|ha podido) ser entregad|não (?:pôde|foi possível)',
    'не (?:может быть|было|удалось) доставл|не доставлено|无法投递|未能送达|退信',
    // Exchange's headings in its other languages.
    'fehler bei der nachrichtenzustellung|konnte nicht (?:zugestellt|übermittelt)|[eé]chec de la remise|error (?:de|en la) entrega|no se puede entregar|recapito non riuscito|falha na entrega|não (?:foi entregue|pode ser entregue)',
    'bezorging (?:aan|is) [^\\n]{0,120}mislukt|niet (?:worden )?(?:bezorgd|afgeleverd)|dostarczenie [^\\n]{0,120}nie powiod|nie (?:można|udało się) dostarczyć|leverans(?:en)? [^\\n]{0,80}misslyck|kunde inte levereras|levering(?:en)? [^\\n]{0,80}(?:mislyk|mislykk)|kunne ikke leveres',
    'toimitus [^\\n]{0,80}epäonnistui|toimittaminen epäonnistui|doručen[ií] [^\\n]{0,120}(?:nezdařilo|selhalo)|nelze doručit|kézbesítés [^\\n]{0,120}sikertelen|nem kézbesíthető|teslim edilemedi|не удалось доставить',
    '(?:配信|配布)(?:に|は)?(?:失敗|不能)|(?:未能|无法|無法)[^\\n]{0,40}(?:传递|傳遞|送达|送達|递送)|배달하지 못|전달되지 못|배달되지 않',
    '(?:配信|配送|配達|送信|送達|お届け)(?:が)?(?:でき|され)(?:ま|な)|届きません|宛先.{0,30}(?:見つかりません|存在しません)',
  ].join('|')}))`,
  'i',
);

export const general: readonly TextBounceRule[] = [
  {
    // Exim's header; providers that use Exim keep it even if they change the text.
    name: 'x-failed-recipients',
    header: ['x-failed-recipients', /\S@\S/],
    warning: /^Warning: message \S+ delayed|has not yet been delivered/im,
  },
  {
    name: 'reject-reason',
    opening: /^(?=reject reason: \S)/m,
    words: /^reject reason: (?<words>[^\n]{1,300})/m,
  },
  {
    // A sender that calls itself a mail system, and words about a returned mail.
    name: 'mailer-daemon',
    header: [
      'from',
      /\b(?:mailer-daemon|mail deliver(?:y)? (?:sub)?system|mail administrator|system administrator|mdaemon|postmaster)\b|mail_service\b|microsoftexchange[\da-f]{32}@/i,
    ],
    opening: failureWords,
  },
  {
    // Gateways and virus scanners that return mail under a name and an envelope of their own.
    name: 'could-not-be-delivered',
    noAnswer: true,
    opening:
      /^(?:-{2,} ?non-delivery (?:report|notification) ?-{2,}$|(?:your|the following|a) (?:(?:e-?)?mail|message)\b[^\n]{0,200}\n?[^\n]{0,40}?\b(?:cannot|can ?not|could not) be delivered(?: to(?: the following\b|:?$)|\.$))/im,
  },
  {
    // RFC 5321 section 4.5.5: bounces have an empty return path. So do many automatic answers, but those do not say this.
    name: 'null-sender',
    fromNullSender: true,
    noAnswer: true,
    opening: failureWords,
  },
  {
    // A canned answer that a host sends in place of a bounce, with the subject of an answer.
    name: 'system-generated',
    fromNullSender: true,
    opening:
      /^(?=[\s\S]{0,3000}\b(?:system-?generated|automatically[ -]generated|auto-?generated|automated) (?:message|e-?mail|notice|notification|response|reply)\b)(?=[\s\S]{0,3000}\b(?:message|e-?mail)\b[^.!?]{0,300}(?:could not|couldn't|cannot|can't|can not) be delivered)/i,
  },
  {
    // It says that it is a report (RFC 6522), but its parts are missing or cannot be read.
    name: 'report-unreadable',
    fromNullSender: true,
    noAnswer: true,
    header: ['content-type', /report-type\s*=\s*"?delivery-status/i],
    opening: /^(?![\s\S]{0,2000}(?:success|relayed))/i,
    warning: /delay|warning|not yet|still (?:trying|being)/i,
  },
];
