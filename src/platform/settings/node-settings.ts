/** The settings of a node: its data, its database, its roles and name, its secrets, its log. */
import { dataBesideProgram, machineName, none, terminalFormat } from './defaults.ts';
import { durationOrNone } from './durations.ts';
import {
  anyText,
  byteSize,
  domainName,
  eachOf,
  oneOf,
  postgresUrl,
  secretText,
  secretTexts,
  wholeNumber,
} from './grammar.ts';
import { computed, setting } from './setting.ts';

export const nodeSettings = {
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
  minFreeSpace: setting(byteSize, {
    name: 'POSTERN_MIN_FREE_SPACE',
    default: '100M',
    description:
      'Free disk space of the data directory below which new mail is refused (429); the rest is reserved for recording outcomes.',
  }),
  stopDelay: setting(durationOrNone, {
    name: 'POSTERN_STOP_DELAY',
    default: '0',
    description:
      'Time after SIGTERM during which mail is still accepted while /health/ready answers 503, so that a load balancer can stop sending requests; 0 stops at once.',
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
  metricsToken: computed(secretText, none, {
    name: 'POSTERN_METRICS_TOKEN',
    default: 'none: only this machine may read /metrics',
    example: 'CHANGE-ME-TO-A-LONG-RANDOM-TEXT',
    description:
      'Bearer token that allows access to /metrics from any address; once set, clients on this machine need it too.',
  }),
};
