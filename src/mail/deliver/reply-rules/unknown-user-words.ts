/**
 * "The user does not exist", in the words of many servers and in twenty languages: a noun for the recipient beside a word for
 * what is not there, with at most an address or a few words between them. A statement only: "if the address is wrong" says
 * nothing.
 */
import { near } from './near.ts';

/** Not of whoever sends: "sender address unknown" is about us. */
const notTheSender =
  /(?<!\b(?:IP|client|sender|sender's|senders|your|from|return|reply|relay|helo|ehlo|server|host) )/;
const noCondition =
  /(?<!\b(?:if|whether|when|unless|in case) (?:the |this |that |your |an? )?(?:recipient'?s? )?)/;
const noun =
  /(?:(?:e-?mail|destination|mail|recipient(?:'s)?|local|virtual|rcpt)[ -]?){0,2}(?:user(?: ?(?:name|account|id))?|mail[ -]?box(?:es)?|recipients?|accounts?|add?ress(?:ee)?(?:es)?|alias|rcpt ?(?:to)?|addressee|person|inbox|e-?mail id|local[- ]part|subscriber|employee|destinataire)/;
/** The address or the name in question. */
const named = /(?: ?:? ?["'<[(]?(?!\d{1,3}\.)[^\s"'<>()[\]]{1,64}["'>\])]?)?/;
const copula =
  /[:,;]? {0,2}(?:(?:that |which )?you (?:have )?(?:entered|specified|typed|gave|tried to reach) )?(?:(?:is|are|was|were|has|have|seems?|appears?) )?(?:been |to be )?(?:currently |permanently )?/;
const isNotThere = [
  // exist, exits, exsist: hosts misspell it.
  /do?e?s{0,2}e? ?n[o']?'?t (?:seem to )?ex[is]{1,4}ts?\b/,
  /(?:(?:can|could) ?n[o']t be|can't be|cannot be|not|wasn't|isn't) (?:found|located)\b/,
  /not (?:known|recogni[sz]ed|registered|local|valid|used|exist(?:s|ing)?|present|defined)\b/,
  /not (?:a|an) (?:known|valid|active|existing|local|registered) (?!RFC)/,
  /(?:unknown?|unk[no]{1,3}w[no]{0,2}|nonexist[ea]nt|non-exist[ea]nt|inexist[ea]nt|unrecogni[sz]ed|invalid|incorrect)\b/,
  /no longer (?:exists?|in use|available|active|valid|accepts?|here|with us|in service|employed|works)\b/,
  /(?:deleted|removed|terminated|cancell?ed|closed|discontinued|deactivated|decommissioned)\b/,
].map(({ source }) => source);

const english = [
  `${noCondition.source}${notTheSender.source}\\b${noun.source}${named.source}${copula.source}(?:${isNotThere.join('|')})`,
  // The address alone.
  String.raw`(?:^|[:;] )["'<(]?@["'>)\]]?[:,]? {0,2}(?:is |was )?(?:does(?: not|n't) exist\b|(?:wasn't|isn't|not) (?:found|known|recogni[sz]ed|used)\b|unknown\b|no longer exists\b)`,
  // An adjective before it.
  `${noCondition.source}\\b(?:unknown?|unkown|invalid|nonexist[ea]nt|non-exist[ea]nt|inexist[ea]nt|unrecogni[sz]ed|unregistered|unrouteable|unroutable|undeliverable|inactive)[ -]${noun.source}\\b(?! error)`,
  /\bno such (?!sender|from|host|domain|file)(?:\w{1,20} ){0,2}?(?:user|mail ?box|mail ?drop|recipient|person|account|address|alias|id|name)\b/
    .source,
  /\bno (?:user|mail[ -]?box|account|recipient|person|one)s? (?:is )?(?:found|available|here|present|(?:by|of|with|at|for) (?:that|this|the given) (?:e-?mail )?(?:name|address|user))/
    .source,
  // A name in a program: RecipNotFound, USER_UNKNOWN, EX_NOUSER.
  String.raw`\b(?:no[_.-]?such[_.-]?(?:user|recip(?:ient)?|mail_?box|address|account)|(?:user|recip(?:ient)?|rcpt|mail_?box|address|account)[_.-]?(?:not[_.-]?(?:found|exists?)|unknown|invalid)|(?:unknown|invalid|bad)[_.-]?(?:user|recip(?:ient)?|rcpt|mail_?box|address)|EX[_ ]NO_?USER)(?![a-z])`,
  /not an? (?:known|valid|active|existing|local) (?:user|recipient|mail ?box|address|account)|not a registered/
    .source,
  /not (?:listed |found )?in (?:the |our |its )?(?:recipient list|directory|address ?book|ldap|user (?:list|database|directory))/
    .source,
  'unknown or illegal alias|invalid[- ]final delivery userid|unavailable mail user|not (?:one of )?our (?:own )?(?:user|customer|address)|(?:user|mailbox)(?: \\w{1,20})? (?:no|not) exist|mailbox (?:here )?by that name',
  String.raw`account that you tried to reach does not exist|does(?: not|n't) have an? (?:\S{1,60} )?(?:account|mail ?box)\b`,
  String.raw`not (?:an? )?(?:user|recipient|mail ?box|account|subscriber) (?:here|on|of|at|in)\b|not a member of (?:this |the )?domain|wrong recipients?\b|(?:does(?: not|n't) handle mail for|(?:un|not )able to (?:find|locate)|(?:can|could)(?:not| not|n't) (?:find|locate))(?: (?:the|that|this|any|alias|local|e-?mail)){0,2} (?:user|recipient|mail ?box|account)\b|RCPT User \S{1,80} not OK`,
  'marked as invalid|no longer on server|address is not active|no valid recipients\\b|no redirect entry for',
  String.raw`(?:^|[:"] ?)no (?:mail ?box|user|account)["'.!]{0,2}$|recipient verif(?:y|ication) from \w{1,20} failed|(?:unable|failed) to (?:validate|verify) (?:the )?recipient|recipient (?:can ?not|can't|could not) be (?:verified|validated)`,
  String.raw`\bbad[-_ ]?(?:recipient|rcpt ?to|(?:destination mailbox |e-?mail )?address(?! syntax)|user|mailbox)\b`,
];

const others = [
  // French
  near(
    'utilisateur|destinataire|adresse|bo[iî]te|compte',
    "inconnue?|inexistante?|introuvable|n'existe (?:pas|plus)|invalide|n'a pas (?:été|pu être) trouv",
    8,
  ),
  // Italian
  near(
    'utente|casella|indirizzo|destin(?:atario|\\.)',
    'sconosciut|inesistente|errat[oa]\\b|non (?:esiste|trovat|è stat[oa] trovat|valid)',
  ),
  // German
  near(
    'empf(?:ä|ae)nger(?:adresse)?s?|benutzer|(?:e-?mail-?)?adresse|postfach|konto',
    'unbekannt|nicht (?:gefunden|bekannt|vorhanden)|existiert nicht|gibt es nicht|ung(?:ü|ue)ltig',
    6,
  ),
  'niemand unter dieser adresse|unbekannte[rs]? (?:benutzer|empf(?:ä|ae)nger|adresse|postfach)|kein(?:e|en)? solche[rsn]? (?:benutzer|empf|adresse|postfach)',
  // Dutch
  near(
    'gebruiker|ontvanger|(?:e-?mail)?adres|postvak|geadresseerde',
    'onbekend|bestaat niet|niet (?:gevonden|bekend|worden gevonden)|ongeldig',
    6,
  ),
  // Spanish and Portuguese
  near(
    'usuario|destinatario|buz[oó]n|cuenta|direcci[oó]n',
    'desconocid|no existe|inexistente|inv[aá]lid|no (?:se (?:encontr|encuentra|pudo encontrar)|encontrad|fue encontrad)',
  ),
  near(
    'usu[aá]rio|destinat[aá]rio|caixa|conta|endere[cç]o',
    'desconhecid|n[aã]o (?:existe|encontrad|foi encontrad|p[oô]de ser encontrad)|inexistente|inv[aá]lid',
    6,
  ),
  'no (?:existe|se (?:encontr[oó]|encuentra|ha encontrado|pudo encontrar)) (?:el |la |ese |esa |dicha )?(?:usuario|destinatario|buz[oó]n|cuenta|persona|direcci[oó]n)',
  // Polish and Czech
  near(
    'konto|skrzynka|odbiorca|u(?:ż|z)ytkownik|adres\\S{0,3}',
    'nie (?:istnieje|zosta(?:ł|l)\\S{0,2} znalezion)|nieznan',
  ),
  'nie ma takie(?:go|j) (?:u(?:ż|z)ytkownika|skrzynki|konta|adresu)|nie (?:znaleziono|mo(?:ż|z)na (?:odnale(?:ź|z)(?:ć|c)|znale(?:ź|z)(?:ć|c))) (?:\\S{1,30} ){0,2}(?:adresu|u(?:ż|z)ytkownika|skrzynki|odbiorcy)',
  near(
    'u(?:ž|z)ivatel|adres[aá]t?|schr(?:á|a)nka|(?:ú|u)(?:č|c)et',
    'neexistuje|nezn(?:á|a)m|neby\\S{1,3} nalezen|nenalezen',
  ),
  // Swedish, Danish, Norwegian, Finnish
  near(
    'anv(?:ä|a)ndaren?|mottagaren?|(?:e-?post|e-?mail)?-?adressen?|brugeren?|modtageren?|kontoen?|bruker(?:en)?|mottaker(?:en)?',
    'finns inte|ok(?:ä|a)nd|hittades inte|kunde inte hittas|findes ikke|ukendt|blev ikke fundet|finnes ikke|ukjent|ble ikke funnet',
    6,
  ),
  near(
    'k(?:ä|a)ytt(?:ä|a)j(?:ä|a)(?:ä|a)?|vastaanottajaa?|\\S{0,12}osoite\\S{0,4}',
    'ei ole olemassa|tuntematon|ei (?:l(?:ö|o)y|voitu l(?:ö|o)yt)',
  ),
  // Hungarian and Turkish
  near(
    'felhaszn(?:á|a)l(?:ó|o)|c(?:í|i)mzett|postafi(?:ó|o)k|c(?:í|i)m',
    'nem (?:l(?:é|e)tezik|tal(?:á|a)lhat)|ismeretlen',
  ),
  near('kullan(?:ı|i)c(?:ı|i)|al(?:ı|i)c(?:ı|i)|hesap|adres\\S{0,4}', 'bulunam|mevcut de(?:ğ|g)il'),
  // Russian
  near(
    'пользовател\\S{0,4}|ящик\\S{0,3}|адрес\\S{0,5}|получател\\S{0,4}|аккаунт\\S{0,3}',
    'не (?:найден|существует|обнаружен|зарегистрирован|удалось найти)|неизвест',
    5,
  ),
  'нет такого (?:пользователя|адреса|ящика|получателя)|неизвестный (?:пользователь|получатель|адрес)',
  // Chinese, Japanese, Korean, which have no spaces between words
  '(?:用户|用戶|邮箱|郵箱|收件人|帐号|账号|帳號|地址)[^。\\n]{0,12}(?:不存在|找不到|未找到|无效|無效)|无此用户|查无此人|找不到[^。\\n]{0,12}(?:地址|收件人|用户|用戶|邮箱|郵箱)',
  '(?:アドレス|ユーザー?|宛先|メールボックス|受信者|アカウント).{0,80}(?:見つかりません|存在しません)',
  '(?:주소|사용자|수신자|받는 사람|사서함|계정).{0,30}(?:찾을 수 없|존재하지 않)',
];

export const unknownUserWords = new RegExp([...english, ...others].join('|'), 'i');
