/**
 * Every setting of Postern: one zod schema with a name, a default and a description for each. The Config type, the check
 * at start, `postern config`, docs/settings.md and the sample in config/ derive from it. Settings are read once, at
 * start, and passed to the code that needs them. All faults are reported together, one line each.
 * settings/grammar.ts and settings/durations.ts parse the values; settings/setting-sources.ts reads the sources.
 */
import { z } from 'zod';
import { bracketed } from './base/tcp-listen.ts';
import { dialectNames } from './glossary.ts';
import { ConfigError } from './settings/config-error.ts';
import {
  dataBesideProgram,
  machineName,
  none,
  noSources,
  systemServers,
  terminalFormat,
} from './settings/defaults.ts';
import {
  defaultTimeouts,
  duration,
  durationOrNone,
  longDuration,
  retryWaits,
  timeouts,
} from './settings/durations.ts';
import {
  anyText,
  byteSize,
  dnsServers,
  domainName,
  eachOf,
  hostToListen,
  mailboxOrOff,
  oneOf,
  portToListen,
  portToReach,
  postgresUrl,
  proxyNetworks,
  secretText,
  secretTexts,
  someOf,
  webAddress,
  wholeNumber,
  yesOrNo,
} from './settings/grammar.ts';
import { computed, type Registered, registered, type Setting, setting } from './settings/setting.ts';
import { refuseRolesAlone, refuseShortEmailRetention } from './settings/setting-conflicts.ts';
import { type Environment, type Given, gather } from './settings/setting-sources.ts';
import { smtpSettings } from './settings/smtp-settings.ts';
import { sourceAddresses } from './settings/source-address-grammar.ts';

const schema = z.object({
  dataDir: computed(anyText, dataBesideProgram, {
    name: 'POSTERN_DATA_DIR',
    default: './data beside package.json',
    example: '/var/lib/postern',
    description: 'Directory of the SQLite database, the generated secret and the mail log.',
  }),
  databaseUrl: computed(postgresUrl, none, {
    name: 'POSTERN_DATABASE_URL',
    default: 'SQLite in the data directory',
    example: 'postgres://postern:PASSWORD@127.0.0.1:5432/postern',
    description: 'URL of a PostgreSQL database, used instead of SQLite; needed to run more than one node.',
  }),
  databaseConnections: setting(wholeNumber('a number of connections', 4, 100), {
    name: 'POSTERN_DATABASE_CONNECTIONS',
    default: '10',
    description:
      'Maximum connections of this node to PostgreSQL; it opens up to three more for metrics and for messages between nodes.',
  }),
  roles: setting(eachOf('a role', ['http', 'mta', 'inbound']), {
    name: 'POSTERN_ROLES',
    default: 'http mta inbound',
    description:
      'Roles of this node: http (API, dashboard, submission), mta (delivery, webhooks), inbound (returned mail). A node may leave one out only if other nodes share its PostgreSQL database.',
  }),
  hostname: computed(domainName, machineName, {
    name: 'POSTERN_HOSTNAME',
    default: "the machine's name",
    example: 'mail.example.org',
    description:
      'Public name of this host in EHLO, Message-ID and return paths; the PTR record of its address should have this name.',
  }),
  httpHost: setting(hostToListen, {
    name: 'POSTERN_HTTP_HOST',
    default: '127.0.0.1',
    description: 'Address that the API listens on; 0.0.0.0 or :: makes it listen on all addresses.',
  }),
  httpPort: setting(portToListen, {
    name: 'POSTERN_HTTP_PORT',
    default: '8080',
    description: 'Port of the API; 0 selects any free port.',
  }),
  httpProxies: computed(proxyNetworks, (): string[] => [], {
    name: 'POSTERN_HTTP_PROXIES',
    default: 'only those on this machine',
    example: '192.0.2.20 10.0.0.0/8',
    description:
      'Addresses and networks of proxies whose X-Forwarded-For header is trusted to name the client, in addition to proxies on this machine.',
  }),
  httpKeepAlive: setting(duration, {
    name: 'POSTERN_HTTP_KEEP_ALIVE',
    default: '75s',
    description:
      'Time that an HTTP connection without a request stays open; longer than the proxy or load balancer in front keeps idle connections, or requests get a 502 now and then.',
  }),
  dialects: setting(someOf('a dialect', dialectNames, 'none'), {
    name: 'POSTERN_DIALECTS',
    default: 'resend,postmark,sendgrid,mailgun',
    description:
      "Other services' APIs that are served, so that applications written for them need another address only; none serves no other API.",
  }),
  httpConcurrency: setting(wholeNumber('a number of sends', 2, 100000), {
    name: 'POSTERN_HTTP_CONCURRENCY',
    default: '1000',
    description: 'Maximum send requests in progress; further requests wait briefly, then get a 429 response.',
  }),
  minFreeSpace: setting(byteSize, {
    name: 'POSTERN_MIN_FREE_SPACE',
    default: '100M',
    description:
      'Free disk space of the data directory below which new mail is refused (429); the rest is reserved for recording outcomes.',
  }),
  baseUrl: computed(webAddress, none, {
    name: 'POSTERN_BASE_URL',
    default: 'http://HOST:PORT',
    example: 'https://mail.example.org',
    description: 'Public URL of the API and the dashboard; tracking links begin with it.',
  }),
  secret: computed(secretText, none, {
    name: 'POSTERN_SECRET',
    default: 'generated in the data directory',
    example: 'CHANGE-ME',
    description:
      'Secret that encrypts stored DKIM keys and webhook secrets and signs links and sessions; all nodes of a database need the same one.',
  }),
  secretOthers: computed(secretTexts, (): string[] => [], {
    name: 'POSTERN_SECRET_OTHERS',
    default: 'none',
    example: 'THE-SECRET-BEFORE-THIS-ONE',
    description:
      'Previous or next secrets, accepted for decrypting and verifying but not used for new data; needed while POSTERN_SECRET changes.',
  }),
  dnsServers: computed(dnsServers, systemServers, {
    name: 'POSTERN_DNS_SERVERS',
    default: "the system's",
    example: '127.0.0.1:53',
    description:
      "DNS servers (IP:PORT or [IPv6]:PORT), in order of preference. DANE trusts the answers of these servers, and of the system's if they are on loopback.",
  }),
  mtaPort: setting(portToReach, {
    name: 'POSTERN_MTA_PORT',
    default: '25',
    description: "Port of the recipients' mail servers; only tests need a value other than 25.",
  }),
  mtaAllowPrivate: setting(yesOrNo, {
    name: 'POSTERN_MTA_ALLOW_PRIVATE',
    default: 'false',
    description:
      'Whether mail may be delivered to loopback and private addresses; true lets senders reach servers in your own network.',
  }),
  mtaSources: computed(sourceAddresses, noSources, {
    name: 'POSTERN_MTA_SOURCES',
    default: 'chosen by the system, with POSTERN_HOSTNAME as the EHLO name',
    example: '192.0.2.10=mail1.example.org 2001:db8::10 192.0.2.30@bulk',
    description:
      'Local addresses to send from in turn, each as ADDRESS[=EHLO-NAME][@POOL]; the EHLO name is POSTERN_HOSTNAME unless given. Without an IPv4 (or IPv6) address here, no mail is delivered over IPv4 (or IPv6). An address with @POOL is used only by organizations assigned to that IP pool.',
  }),
  mtaRetry: setting(retryWaits, {
    name: 'POSTERN_MTA_RETRY',
    default: '30s 2m 5m 10m 20m 40m 1h 2h 4h*12',
    description: 'Delays between the attempts of a delivery, each varied at random by up to 20 %.',
  }),
  mtaMaxAge: setting(duration, {
    name: 'POSTERN_MTA_MAX_AGE',
    default: '48h',
    description: 'Age at which undelivered mail expires; no further attempt is made.',
  }),
  mtaConcurrency: setting(wholeNumber('a number of deliveries', 1, 10000), {
    name: 'POSTERN_MTA_CONCURRENCY',
    default: '500',
    description: 'Maximum deliveries in progress on this node, over all destinations.',
  }),
  mtaPerDestination: setting(wholeNumber('a number of connections', 1, 1000), {
    name: 'POSTERN_MTA_PER_DESTINATION',
    default: '20',
    description:
      'Maximum connections of this node to one destination (the MX hosts of a domain), counting all domains that these hosts serve.',
  }),
  shapingFile: computed(anyText, none, {
    name: 'POSTERN_SHAPING_FILE',
    default: 'only the built-in rules',
    example: '/etc/postern-shaping.jsonc',
    description:
      'File of shaping rules for single destinations; they take precedence over the built-in rules in config/shaping.jsonc.',
  }),
  mtaTimeouts: setting(timeouts, {
    name: 'POSTERN_MTA_TIMEOUTS',
    default: timeouts.print(defaultTimeouts),
    description: 'Timeouts of the steps of an SMTP session; steps left out keep their defaults.',
  }),
  suppressAfter: setting(
    someOf('a category of hard bounces', ['unknown_user', 'mailbox_disabled', 'dns', 'protocol']),
    {
      name: 'POSTERN_SUPPRESS_AFTER',
      default: 'unknown_user mailbox_disabled dns',
      description:
        'Categories of hard bounces after which the recipient is suppressed; off disables automatic suppression.',
    },
  ),
  idempotencyKeep: setting(duration, {
    name: 'POSTERN_IDEMPOTENCY_KEEP',
    default: '24h',
    description:
      'Time that an idempotency key is remembered; a repeated request within it does not send the mail twice.',
  }),
  keepMessages: setting(durationOrNone, {
    name: 'POSTERN_KEEP_MESSAGES',
    default: '24h',
    description:
      'Time that a message is kept for `postern email source` after its last delivery is final; 0 deletes it at once.',
  }),
  keepEvents: setting(duration, {
    name: 'POSTERN_KEEP_EVENTS',
    default: '30d',
    description: 'Time that events, attempts and SMTP transcripts are kept.',
  }),
  keepEmails: computed(longDuration, none, {
    name: 'POSTERN_KEEP_EMAILS',
    default: 'forever',
    example: '730d',
    description:
      'Time that emails and their final status are kept; an email with an unfinished delivery is always kept.',
  }),
  creditsLow: setting(wholeNumber('a percentage', 0, 100), {
    name: 'POSTERN_CREDITS_LOW',
    default: '10',
    description: 'Remaining percentage of the quota at which the event credits.low is sent.',
  }),
  tlsReports: setting(mailboxOrOff, {
    name: 'POSTERN_TLS_REPORTS',
    default: 'off',
    example: 'Acme Mail <tls-reports@mail.example.org>',
    description:
      'Sender of TLS reports (RFC 8460) to recipient domains that ask for them, named in them as the organization and its contact; an organization here must have its domain, verified, and is charged for reports by mail.',
  }),
  unverifiedDomains: setting(oneOf('a policy', ['keep', 'refuse']), {
    name: 'POSTERN_UNVERIFIED_DOMAINS',
    default: 'keep',
    description: 'Sends from a domain whose DKIM record was missing twice, six hours apart: kept or refused.',
  }),
  ...smtpSettings,
  textFromHtml: setting(yesOrNo, {
    name: 'POSTERN_TEXT_FROM_HTML',
    default: 'true',
    description:
      'Whether a mail sent through the API with html and without text gets a text part made from the HTML; an empty text prevents it for one mail.',
  }),
  metricsToken: computed(secretText, none, {
    name: 'POSTERN_METRICS_TOKEN',
    default: 'none: only this machine may read /metrics',
    example: 'CHANGE-ME-TO-A-LONG-RANDOM-TEXT',
    description:
      'Bearer token that allows access to /metrics from any address; once set, clients on this machine need it too.',
  }),
  stopDelay: setting(durationOrNone, {
    name: 'POSTERN_STOP_DELAY',
    default: '0',
    description:
      'Time after SIGTERM during which mail is still accepted while /health/ready answers 503, so that a load balancer can stop sending requests; 0 stops at once.',
  }),
  returnPathDomain: computed(domainName, none, {
    name: 'POSTERN_RETURN_PATH_DOMAIN',
    default: 'POSTERN_HOSTNAME',
    example: 'bounces.example.org',
    description:
      'Domain of the return paths (MAIL FROM); its MX record must lead to this server, because bounces are sent there.',
  }),
  attachmentAllowPrivate: setting(yesOrNo, {
    name: 'POSTERN_ATTACHMENT_ALLOW_PRIVATE',
    default: 'false',
    description:
      'Whether the `url` of an attachment may be on a loopback or private address and on any port; true lets every API key that can send read files of servers in your own network.',
  }),
  webhookAllowPrivate: setting(yesOrNo, {
    name: 'POSTERN_WEBHOOK_ALLOW_PRIVATE',
    default: 'false',
    description:
      'Whether webhooks may post to loopback and private addresses and to any port; true lets organizations reach servers in your own network.',
  }),
  logLevel: setting(oneOf('a log level', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), {
    name: 'POSTERN_LOG_LEVEL',
    default: 'info',
    description: 'Lowest level of log lines to write: trace, debug, info, warn, error, fatal or silent.',
  }),
  logFormat: computed(oneOf('a log format', ['json', 'pretty']), terminalFormat, {
    name: 'POSTERN_LOG_FORMAT',
    default: 'json, or pretty on a terminal',
    example: 'json',
    description: 'Format of the log on standard output: json or pretty.',
  }),
});

type Key = keyof typeof schema.shape;

export const keys = Object.keys(schema.shape) as Key[];

export function about(key: Key): Registered {
  return registered.get(schema.shape[key])!;
}

/** Refuses settings that contradict each other, then fills in defaults that depend on other settings. */
const complete = schema
  .superRefine(refuseRolesAlone)
  .superRefine(refuseShortEmailRetention)
  .transform((config) => ({
    ...config,
    baseUrl: config.baseUrl ?? `http://${bracketed(config.httpHost)}:${config.httpPort}`,
    returnPathDomain: config.returnPathDomain ?? config.hostname,
  }));

export type Config = z.output<typeof complete>;

export const settings: readonly Setting[] = keys.map((key) => {
  const { grammar, ...documented } = about(key);
  return documented;
});

export function loadConfig(env: Environment = process.env): Config {
  return load(env).config;
}

/** The settings, and those that were given, each with its source. */
export function load(env: Environment): { config: Config; given: Map<string, Given> } {
  const known = keys.map(about).map(({ name, grammar }) => ({ name, list: grammar.list === true }));
  const { given, faults } = gather(env, known);
  const texts = Object.fromEntries(keys.map((key) => [key, given.get(about(key).name)?.text]));
  const read = complete.safeParse(texts);
  for (const { path, message } of read.error?.issues ?? []) {
    const { name } = about(path[0] as Key);
    faults.push(`${name}: ${message}${given.get(name)?.where ?? ''}`);
  }
  if (faults.length > 0 || !read.success) throw new ConfigError(faults);
  return { config: read.data, given };
}
