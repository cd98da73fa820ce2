/**
 * Who fetched a tracking pixel or followed a tracking link: a table of rules, the first that fits decides.
 *
 *   human     a person's own program
 *   proxy     fetched by a provider in the moment its user opened the mail: a person, seen through a proxy
 *   scanner   a machine of its own accord: security scanners, prefetching, link previews, scripts
 *
 * People are counted, so human and proxy are; scanners are recorded and not counted.
 *
 * BUGS: a scanner that comes late, under a browser's name, from anywhere, is a human here. So is Apple's prefetching
 * where it gives more than its usual "Mozilla/5.0".
 */
export type VisitorKind = 'human' | 'proxy' | 'scanner';

export interface Visitor {
  event: 'open' | 'click';
  method: string;
  userAgent: string;
  /** The headers Sec-Purpose, Purpose, X-Purpose and X-Moz, those that are there. */
  purpose: string;
  /** Milliseconds since the receiver took the mail; 0 while it is being handed over, null where it is not known. */
  sinceDelivery: number | null;
  /** Whether a person had opened the mail before. */
  wasOpened: boolean;
}

interface Rule {
  kind: VisitorKind;
  fits(visitor: Visitor): boolean;
}

const named =
  (pattern: RegExp) =>
  ({ userAgent }: Visitor) =>
    pattern.test(userAgent);

const imageProxies = named(/GoogleImageProxy|YahooMailProxy/);

/** Nobody is notified of a mail, opens it and follows a link in it sooner than this. */
const tooSoonMs = 2000;

const rules: Rule[] = [
  // Programs that look whether a link is alive ask for its head; browsers and mail programs get it.
  { kind: 'scanner', fits: ({ method }) => method === 'HEAD' },

  // A browser or mail program that loads ahead says so: Sec-Purpose in Chrome, X-Moz in Firefox, the others before.
  { kind: 'scanner', fits: ({ purpose }) => /prefetch|prerender|preview/i.test(purpose) },

  // Apple's Mail Privacy Protection loads every image soon after arrival, whether the mail is ever opened or not.
  // "Mozilla/5.0" and nothing more is its name. No name at all is a program that somebody wrote.
  { kind: 'scanner', fits: named(/^\s*(Mozilla\/5\.0)?\s*$/) },

  // Gmail, in a session that is open, loads images when a mail arrives, under a browser's name that ends like none.
  { kind: 'scanner', fits: named(/Edge\/12\.246 Mozilla\/5\.0$/) },

  // Gmail and Yahoo (with AOL) fetch images through proxies, when the mail is opened. They follow no links for people.
  {
    kind: 'proxy',
    fits: (visitor) => visitor.event === 'open' && imageProxies(visitor),
  },
  { kind: 'scanner', fits: imageProxies },

  // Security products that give their name: Microsoft's Safe Links and Office, Barracuda, Proofpoint, Mimecast, and
  // those of Trend Micro, Cisco, Symantec, Sophos, Forcepoint, Trellix, Check Point and Zscaler.
  {
    kind: 'scanner',
    fits: named(
      /SafeLinks|Microsoft Office (Existence|Protocol) Discovery|Barracuda|Proofpoint|Mimecast|Trend ?Micro|IronPort|MessageLabs|Symantec|Sophos|Forcepoint|FireEye|Trellix|Check ?Point|Zscaler/i,
    ),
  },

  // Crawlers and previews of links in chats: nearly all call themselves a bot (the phone maker Cubot does not count).
  {
    kind: 'scanner',
    fits: named(/(?<!\bcu)bot\b|crawl|spider|slurp|scanner|archiver|facebookexternalhit|WhatsApp\/|preview/i),
  },

  // Browsers driven by programs.
  { kind: 'scanner', fits: named(/Headless|PhantomJS|Selenium|Puppeteer|Playwright|Lighthouse/i) },

  // Scripts and libraries. Not okhttp and CFNetwork: mail programs on phones load their images with them.
  {
    kind: 'scanner',
    fits: named(
      /^(curl|wget|libwww|lwp|python|aiohttp|httpx|java|apache-httpclient|go-http-client|axios|got|node-fetch|ruby|php|perl|scrapy|guzzle|httpie|postmanruntime|insomnia|powershell)\b|python-(requests|urllib|httpx)|libwww-perl|WindowsPowerShell/i,
    ),
  },

  // A click right after the delivery, or during it, when nobody had opened the mail: a gateway that tries the links
  // before it lets the mail through, most often under a browser's name.
  {
    kind: 'scanner',
    fits: ({ event, sinceDelivery, wasOpened }) =>
      event === 'click' && !wasOpened && sinceDelivery !== null && sinceDelivery < tooSoonMs,
  },
];

export function visitorKind(visitor: Visitor): VisitorKind {
  return rules.find(({ fits }) => fits(visitor))?.kind ?? 'human';
}
