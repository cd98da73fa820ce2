/**
 * Every setting of Postern: one zod schema with a name, a default and a sentence for each. From it come the Config
 * type, the start-up check, `postern config`, the table in README.md and the sample in config/. Settings are read
 * once, at start; whoever needs one is handed it. All that is wrong is said at once, a line for each fault.
 * The written forms are in settings/grammar.ts and settings/durations.ts, the sources in settings/setting-sources.ts.
 */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import {
  defaultTimeouts,
  duration,
  durationOrNone,
  longDuration,
  retryWaits,
  timeouts,
} from './settings/durations.ts';
import {
  addresses,
  anyText,
  asHostName,
  bracketed,
  byteSize,
  dnsServers,
  domainName,
  eachOf,
  hostToListen,
  oneOf,
  portOrOff,
  portToListen,
  portToReach,
  postgresUrl,
  secretText,
  secretTexts,
  someOf,
  webAddress,
  wholeNumber,
  yesOrNo,
} from './settings/grammar.ts';
import { computed, type Registered, registered, type Setting, setting } from './settings/setting.ts';
import { refuseRolesAlone, refuseShortStories } from './settings/setting-conflicts.ts';
import { type Environment, type Given, gather } from './settings/setting-sources.ts';
import { sourceAddresses } from './settings/source-address-grammar.ts';

const none = () => null;

/** Wherever a command is given, it means the same. */
const dataBesideProgram = () => join(import.meta.dirname, '../data');

const systemServers = (): string[] => [];

const noSources = () => [];

/** Names of one label pass here, for many a machine has no other; what no EHLO may say does not. */
const machineName = () => asHostName(hostname()) ?? 'localhost';

const terminalFormat = () => (process.stdout.isTTY ? 'pretty' : 'json');

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
    description: 'PostgreSQL to use instead of SQLite, where one machine is not enough.',
  }),
  databaseConnections: setting(wholeNumber('a number of connections', 4, 100), {
    name: 'POSTERN_DATABASE_CONNECTIONS',
    default: '10',
    description:
      'Connections to PostgreSQL that this node may open for its work; three more are for metrics and for hearing other nodes.',
  }),
  roles: setting(eachOf('a role', ['http', 'mta', 'inbound']), {
    name: 'POSTERN_ROLES',
    default: 'http mta inbound',
    description:
      'What this node does, of several on one PostgreSQL: http (API, dashboard, submission), mta (delivery, webhooks), inbound (returned mail).',
  }),
  hostname: computed(domainName, machineName, {
    name: 'POSTERN_HOSTNAME',
    default: "the machine's name",
    example: 'mail.example.org',
    description:
      'Name of this host in EHLO, Message-ID and return paths; its address should resolve back to it.',
  }),
  httpHost: setting(hostToListen, {
    name: 'POSTERN_HTTP_HOST',
    default: '127.0.0.1',
    description: 'Address that the API listens on; 0.0.0.0 or :: for all.',
  }),
  httpPort: setting(portToListen, {
    name: 'POSTERN_HTTP_PORT',
    default: '8080',
    description: 'Port of the API; 0 takes any free one.',
  }),
  httpProxies: computed(addresses, (): string[] => [], {
    name: 'POSTERN_HTTP_PROXIES',
    default: 'those on this machine',
    example: '192.0.2.20',
    description:
      'Proxies whose X-Forwarded-For tells the address of the client, besides those on this machine.',
  }),
  httpConcurrency: setting(wholeNumber('a number of sends', 2, 100000), {
    name: 'POSTERN_HTTP_CONCURRENCY',
    default: '1000',
    description: 'Sends taken at once; more wait a moment, then are answered 429.',
  }),
  minFreeSpace: setting(byteSize, {
    name: 'POSTERN_MIN_FREE_SPACE',
    default: '100M',
    description: 'Space of the data directory below which new mail is refused (429), kept for outcomes.',
  }),
  baseUrl: computed(webAddress, none, {
    name: 'POSTERN_BASE_URL',
    default: 'http://HOST:PORT',
    example: 'https://mail.example.org',
    description: 'Address of the API as the world sees it, in tracking links too.',
  }),
  secret: computed(secretText, none, {
    name: 'POSTERN_SECRET',
    default: 'generated in the data directory',
    example: 'CHANGE-ME',
    description:
      "Encrypts DKIM keys and webhooks' secrets at rest, signs links and sessions; the same on all nodes of a database.",
  }),
  secretOthers: computed(secretTexts, (): string[] => [], {
    name: 'POSTERN_SECRET_OTHERS',
    default: 'none',
    example: 'THE-SECRET-BEFORE-THIS-ONE',
    description: 'Secrets that open and verify beside POSTERN_SECRET: the ones before it, or the next one.',
  }),
  dnsServers: computed(dnsServers, systemServers, {
    name: 'POSTERN_DNS_SERVERS',
    default: "the system's",
    example: '127.0.0.1:53',
    description:
      "DNS servers (IP:PORT or [IPv6]:PORT), best first. DANE trusts these, and the system's on loopback.",
  }),
  mtaPort: setting(portToReach, {
    name: 'POSTERN_MTA_PORT',
    default: '25',
    description: "Port of the recipients' mail servers; anything but 25 is for tests.",
  }),
  mtaAllowPrivate: setting(yesOrNo, {
    name: 'POSTERN_MTA_ALLOW_PRIVATE',
    default: 'false',
    description: 'Whether mail may be delivered to loopback and private addresses.',
  }),
  mtaSources: computed(sourceAddresses, noSources, {
    name: 'POSTERN_MTA_SOURCES',
    default: "the system's choice, as POSTERN_HOSTNAME",
    example: '192.0.2.10=mail1.example.org 2001:db8::10 192.0.2.30@bulk',
    description:
      'Addresses to send from in turn, ADDRESS[=EHLO-NAME][@POOL], each with its EHLO name or else POSTERN_HOSTNAME; without one of a family, none of that family is delivered to. Those with @POOL are for the organizations pinned to that pool.',
  }),
  mtaRetry: setting(retryWaits, {
    name: 'POSTERN_MTA_RETRY',
    default: '30s 2m 5m 10m 20m 40m 1h 2h 4h*12',
    description: 'Waits between the attempts of a delivery, each varied by up to 20 %.',
  }),
  mtaMaxAge: setting(duration, {
    name: 'POSTERN_MTA_MAX_AGE',
    default: '48h',
    description: 'Age at which mail that could not be delivered expires.',
  }),
  mtaConcurrency: setting(wholeNumber('a number of deliveries', 1, 10000), {
    name: 'POSTERN_MTA_CONCURRENCY',
    default: '500',
    description: 'Deliveries at once, in all.',
  }),
  mtaPerDestination: setting(wholeNumber('a number of connections', 1, 1000), {
    name: 'POSTERN_MTA_PER_DESTINATION',
    default: '20',
    description:
      'Connections at once, at most, to the hosts that serve a domain, whichever of their domains the mail is for.',
  }),
  shapingFile: computed(anyText, none, {
    name: 'POSTERN_SHAPING_FILE',
    default: 'the built-in rules',
    example: '/etc/postern-shaping.jsonc',
    description:
      'File of rules for single destinations, which come before the built-in config/shaping.jsonc.',
  }),
  mtaTimeouts: setting(timeouts, {
    name: 'POSTERN_MTA_TIMEOUTS',
    default: timeouts.print(defaultTimeouts),
    description: 'Patience at each step of an SMTP conversation; steps left out keep their defaults.',
  }),
  suppressAfter: setting(
    someOf('a category of hard bounces', ['unknown_user', 'mailbox_disabled', 'dns', 'protocol']),
    {
      name: 'POSTERN_SUPPRESS_AFTER',
      default: 'unknown_user mailbox_disabled dns',
      description:
        "Hard bounces of the recipient's fault after which an address is suppressed, by category; off for none.",
    },
  ),
  idempotencyKeep: setting(duration, {
    name: 'POSTERN_IDEMPOTENCY_KEEP',
    default: '24h',
    description: 'How long an idempotency key is remembered.',
  }),
  keepMessages: setting(durationOrNone, {
    name: 'POSTERN_KEEP_MESSAGES',
    default: '24h',
    description:
      "How long a message's bytes are kept for `postern email source` when its last delivery is final; 0 for not at all.",
  }),
  keepEvents: setting(duration, {
    name: 'POSTERN_KEEP_EVENTS',
    default: '30d',
    description: 'How long events and attempts, with their transcripts, are kept.',
  }),
  keepEmails: computed(longDuration, none, {
    name: 'POSTERN_KEEP_EMAILS',
    default: 'for good',
    example: '730d',
    description:
      'How long emails are kept, with what became of them; one of which something is still to be sent stays.',
  }),
  creditsLow: setting(wholeNumber('a percentage', 0, 100), {
    name: 'POSTERN_CREDITS_LOW',
    default: '10',
    description: 'Percentage of the quota that, when no more is left, makes the event credits.low.',
  }),
  inboundPort: setting(portOrOff, {
    name: 'POSTERN_INBOUND_PORT',
    default: 'off',
    description: 'Port for returned mail and complaints, 25 in production.',
  }),
  submissionPort: setting(portOrOff, {
    name: 'POSTERN_SUBMISSION_PORT',
    default: 'off',
    description: 'Port where applications submit mail over SMTP, usually 587; TLS by STARTTLS.',
  }),
  submissionTlsPort: setting(portOrOff, {
    name: 'POSTERN_SUBMISSION_TLS_PORT',
    default: 'off',
    description: 'Port of the same with TLS from the start, usually 465.',
  }),
  submissionAllowClear: setting(yesOrNo, {
    name: 'POSTERN_SUBMISSION_ALLOW_CLEAR',
    default: 'false',
    description: 'Whether applications on this machine may log in without TLS.',
  }),
  smtpHost: computed(hostToListen, none, {
    name: 'POSTERN_SMTP_HOST',
    default: 'every address of the machine',
    example: '192.0.2.10',
    description: 'Address that mail is taken on, by these ports.',
  }),
  smtpConnections: setting(wholeNumber('a number of connections', 1, 100000), {
    name: 'POSTERN_SMTP_CONNECTIONS',
    default: '1000',
    description: 'Clients at once on the submission ports together, and as many on the inbound port.',
  }),
  smtpPerClient: setting(wholeNumber('a number of connections', 1, 100000), {
    name: 'POSTERN_SMTP_PER_CLIENT',
    default: '50',
    description:
      'Connections at once from one address (of IPv6, one network of 64 bits). On the inbound port, at most an eighth of all.',
  }),
  smtpProxies: computed(addresses, (): string[] => [], {
    name: 'POSTERN_SMTP_PROXIES',
    default: 'none',
    example: '192.0.2.20',
    description: 'Balancers, whose connections to these ports begin with a PROXY header (version 1).',
  }),
  tlsCert: computed(anyText, none, {
    name: 'POSTERN_TLS_CERT',
    default: 'one that is made, and vouches for itself',
    example: '/etc/letsencrypt/live/mail.example.org/fullchain.pem',
    description: 'Certificate that these ports show, with its chain, in PEM; read anew when it changes.',
  }),
  tlsKey: computed(anyText, none, {
    name: 'POSTERN_TLS_KEY',
    default: 'in the file of POSTERN_TLS_CERT',
    example: '/etc/letsencrypt/live/mail.example.org/privkey.pem',
    description: "The certificate's private key in PEM.",
  }),
  metricsToken: computed(secretText, none, {
    name: 'POSTERN_METRICS_TOKEN',
    default: 'none: /metrics is for this machine alone',
    example: 'CHANGE-ME-TO-A-LONG-RANDOM-TEXT',
    description:
      'Token that /metrics takes as Authorization: Bearer, from anybody; then it is needed on this machine too.',
  }),
  stopDelay: setting(durationOrNone, {
    name: 'POSTERN_STOP_DELAY',
    default: '0',
    description:
      'How long mail is still taken after SIGTERM while /health/ready says 503, for a balancer to turn away; 0 for not at all.',
  }),
  returnPathDomain: computed(domainName, none, {
    name: 'POSTERN_RETURN_PATH_DOMAIN',
    default: 'POSTERN_HOSTNAME',
    example: 'bounces.example.org',
    description: 'Domain of return paths, where bounces come back.',
  }),
  webhookAllowPrivate: setting(yesOrNo, {
    name: 'POSTERN_WEBHOOK_ALLOW_PRIVATE',
    default: 'false',
    description: 'Whether webhooks may post to loopback and private addresses, and to any port.',
  }),
  logLevel: setting(oneOf('a log level', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), {
    name: 'POSTERN_LOG_LEVEL',
    default: 'info',
    description: 'Least serious log line to write: trace, debug, info, warn, error, fatal or silent.',
  }),
  logFormat: computed(oneOf('a log format', ['json', 'pretty']), terminalFormat, {
    name: 'POSTERN_LOG_FORMAT',
    default: 'json, or pretty on a terminal',
    example: 'json',
    description: 'Form of the log on standard output: json or pretty.',
  }),
});

type Key = keyof typeof schema.shape;

const keys = Object.keys(schema.shape) as Key[];

function about(key: Key): Registered {
  return registered.get(schema.shape[key])!;
}

/** What does not go together is refused; then the defaults that follow other settings. */
const complete = schema
  .superRefine(refuseRolesAlone)
  .superRefine(refuseShortStories)
  .transform((config) => ({
    ...config,
    baseUrl: config.baseUrl ?? `http://${bracketed(config.httpHost)}:${config.httpPort}`,
    returnPathDomain: config.returnPathDomain ?? config.hostname,
  }));

export type Config = z.output<typeof complete>;

/** Its message is what the operator reads: a line for each fault. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

export const settings: readonly Setting[] = keys.map((key) => {
  const { grammar, ...documented } = about(key);
  return documented;
});

export function loadConfig(env: Environment = process.env): Config {
  return load(env).config;
}

function load(env: Environment): { config: Config; given: Map<string, Given> } {
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

export interface EffectiveSetting {
  name: string;
  value: string;
  source: 'default' | Given['source'];
  description: string;
}

/** What `postern config` prints: what holds, where it came from, and no secret. */
export function effectiveConfig(env: Environment = process.env): EffectiveSetting[] {
  const { config, given } = load(env);
  return keys.map((key) => {
    const { name, description, grammar, default: byDefault } = about(key);
    const value = config[key];
    const printed = value === null ? '' : grammar.print(value);
    const source = given.get(name)?.source ?? 'default';
    return { name, value: printed === '' ? byDefault : printed, source, description };
  });
}

/** What an operator should know who has left the name of a machine that nobody else can look up; else null. */
export function hostnameAdvice({ hostname }: Pick<Config, 'hostname'>): string | null {
  if (hostname.includes('.')) return null;
  return `POSTERN_HOSTNAME is "${hostname}", which no other server can look up; set it to this machine's public name`;
}
