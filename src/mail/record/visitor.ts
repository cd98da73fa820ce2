/**
 * Classifies the visitor of a tracking pixel or link with a table of rules; the first rule that matches decides.
 *
 *   human     a person's own program
 *   proxy     a provider that fetches at the moment its user opens the mail: a person behind a proxy
 *   scanner   a program that acts by itself: security scanners, prefetching, link previews, scripts
 *
 * Humans and proxies are counted as opens and clicks; scanners are recorded but not counted.
 *
 * BUGS: a scanner that comes late and uses a browser's name is classified as human. So is Apple's prefetching if it sends
 * more than its usual "Mozilla/5.0".
 */
export type VisitorKind = 'human' | 'proxy' | 'scanner';

export interface Visitor {
  event: 'open' | 'click';
  method: string;
  userAgent: string;
  /** The values of Sec-Purpose, Purpose, X-Purpose and X-Moz. */
  purpose: string;
  /** Milliseconds since the receiving server accepted the mail; 0 during the transfer, null if unknown. */
  sinceDelivery: number | null;
  /** Whether a person had opened the mail before. */
  wasOpened: boolean;
}

interface Rule {
  kind: VisitorKind;
  matches(visitor: Visitor): boolean;
}

const named =
  (pattern: RegExp) =>
  ({ userAgent }: Visitor) =>
    pattern.test(userAgent);

const imageProxies = named(/GoogleImageProxy|YahooMailProxy/);

/** No person gets a notification, opens the mail and follows a link faster than this. */
const tooSoonMs = 2000;

const rules: Rule[] = [
  // Programs that check whether a link works use HEAD; browsers and mail programs use GET.
  { kind: 'scanner', matches: ({ method }) => method === 'HEAD' },

  // A browser or mail program that prefetches says so: Sec-Purpose in Chrome, X-Moz in Firefox, the others in old versions.
  { kind: 'scanner', matches: ({ purpose }) => /prefetch|prerender|preview/i.test(purpose) },

  // Apple's Mail Privacy Protection loads every image soon after arrival, whether the mail is ever opened or not.
  // Its User-Agent is just "Mozilla/5.0". An empty User-Agent is a script.
  { kind: 'scanner', matches: named(/^\s*(?:Mozilla\/5\.0\s*)?$/) },

  // Gmail in an open session loads images when a mail arrives, with a User-Agent that no browser has.
  { kind: 'scanner', matches: named(/Edge\/12\.246 Mozilla\/5\.0$/) },

  // Gmail and Yahoo (with AOL) fetch images through proxies when the mail is opened. Those proxies never follow links.
  {
    kind: 'proxy',
    matches: (visitor) => visitor.event === 'open' && imageProxies(visitor),
  },
  { kind: 'scanner', matches: imageProxies },

  // Security products that identify themselves: Microsoft's Safe Links and Office, Barracuda, Proofpoint, Mimecast, and
  // those of Trend Micro, Cisco, Symantec, Sophos, Forcepoint, Trellix, Check Point and Zscaler.
  {
    kind: 'scanner',
    matches: named(
      /SafeLinks|Microsoft Office (Existence|Protocol) Discovery|Barracuda|Proofpoint|Mimecast|Trend ?Micro|IronPort|MessageLabs|Symantec|Sophos|Forcepoint|FireEye|Trellix|Check ?Point|Zscaler/i,
    ),
  },

  // Crawlers and previews of links in chats: nearly all call themselves a bot (the phone maker Cubot does not count).
  {
    kind: 'scanner',
    matches: named(
      /(?<!\bcu)bot\b|crawl|spider|slurp|scanner|archiver|facebookexternalhit|WhatsApp\/|preview/i,
    ),
  },

  // Browsers driven by programs.
  { kind: 'scanner', matches: named(/Headless|PhantomJS|Selenium|Puppeteer|Playwright|Lighthouse/i) },

  // Scripts and libraries. Not okhttp and CFNetwork: mail programs on phones load their images with them.
  {
    kind: 'scanner',
    matches: named(
      /^(curl|wget|libwww|lwp|python|aiohttp|httpx|java|apache-httpclient|go-http-client|axios|got|node-fetch|ruby|php|perl|scrapy|guzzle|httpie|postmanruntime|insomnia|powershell)\b|python-(requests|urllib|httpx)|libwww-perl|WindowsPowerShell/i,
    ),
  },

  // A click during or right after the delivery of a mail that nobody opened: a gateway that tests the links before it
  // passes the mail on, usually with a browser's User-Agent.
  {
    kind: 'scanner',
    matches: ({ event, sinceDelivery, wasOpened }) =>
      event === 'click' && !wasOpened && sinceDelivery !== null && sinceDelivery < tooSoonMs,
  },
];

export function visitorKind(visitor: Visitor): VisitorKind {
  return rules.find(({ matches }) => matches(visitor))?.kind ?? 'human';
}
