/** The settings of mail that leaves: DNS, connections, retries, returned mail, reports. */
import { none, noSources, systemServers } from './defaults.ts';
import { defaultTimeouts, duration, retryWaits, timeouts } from './durations.ts';
import {
  anyText,
  dnsServers,
  domainName,
  mailboxOrOff,
  oneOf,
  portToReach,
  someOf,
  wholeNumber,
  yesOrNo,
} from './grammar.ts';
import { computed, setting } from './setting.ts';
import { plainAddresses, sourceAddresses, warmUpPolicy } from './source-address-grammar.ts';

export const deliverySettings = {
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
  warmUp: setting(warmUpPolicy, {
    name: 'POSTERN_WARM_UP',
    default: 'wait',
    description:
      'Mail over the daily allowance of a new source address: `wait` for the next day, `@POOL` to send it from that IP pool if that has room, `warn` to send it all the same, or `off`. The only address of its family never makes mail wait.',
  }),
  warmSources: computed(plainAddresses, noSources, {
    name: 'POSTERN_WARM_SOURCES',
    default: 'addresses that this server sent from before it was upgraded to 1.1',
    example: '192.0.2.10 2001:db8::10',
    description:
      'Addresses of POSTERN_MTA_SOURCES that receivers know already, from another server for example; they have no allowance.',
  }),
  mtaRetry: setting(retryWaits, {
    name: 'POSTERN_MTA_RETRY',
    default: '30s 2m 5m 10m 20m 40m 1h 2h 4h*12',
    description: 'Delays between the attempts of a delivery, each varied at random by up to 20%.',
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
  returnPathDomain: computed(domainName, none, {
    name: 'POSTERN_RETURN_PATH_DOMAIN',
    default: 'POSTERN_HOSTNAME',
    example: 'bounces.example.org',
    description:
      'Domain of the return paths (MAIL FROM); its MX record must lead to this server, because bounces are sent there.',
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
  unverifiedDomains: setting(oneOf('a policy', ['keep', 'refuse']), {
    name: 'POSTERN_UNVERIFIED_DOMAINS',
    default: 'keep',
    description: 'Sends from a domain whose DKIM record was missing twice, six hours apart: kept or refused.',
  }),
  autoPause: setting(oneOf('a mode', ['off', 'warn', 'hold']), {
    name: 'POSTERN_AUTO_PAUSE',
    default: 'warn',
    description:
      'What happens if the mail of a key, a stream or a tag is complained about or bounces too often: nothing (off), people are told (warn), or that mail is also held until somebody releases it (hold). `postern org auto-pause` sets it for one organization.',
  }),
  textFromHtml: setting(yesOrNo, {
    name: 'POSTERN_TEXT_FROM_HTML',
    default: 'true',
    description:
      'Whether a mail sent through the API with html and without text gets a text part made from the HTML; an empty text prevents it for one mail.',
  }),
  tlsReports: setting(mailboxOrOff, {
    name: 'POSTERN_TLS_REPORTS',
    default: 'off',
    example: 'Acme Mail <tls-reports@mail.example.org>',
    description:
      'Sender of TLS reports (RFC 8460) to recipient domains that ask for them, named in them as the organization and its contact; an organization here must have its domain, verified, and is charged for reports by mail.',
  }),
  noticesFrom: setting(mailboxOrOff, {
    name: 'POSTERN_NOTICES_FROM',
    default: 'off',
    example: 'Postern <postern@mail.example.org>',
    description:
      'Sender of mail to the users of the dashboard: problems that need action, invitations and password resets; an organization here must have its domain, verified, and is not charged. Off sends none: links are shown to be copied.',
  }),
};
