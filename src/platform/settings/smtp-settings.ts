/**
 * The settings of the SMTP ports: submission by applications and returned mail. They are part of the schema in
 * platform/settings/config.ts.
 */
import { none } from './defaults.ts';
import {
  anyText,
  hostToListen,
  portOrOff,
  proxyNetworks,
  spamFilterUrl,
  wholeNumber,
  yesOrNo,
} from './grammar.ts';
import { computed, setting } from './setting.ts';

export const smtpSettings = {
  inboundPort: setting(portOrOff, {
    name: 'POSTERN_INBOUND_PORT',
    default: 'off',
    description:
      'Port that receives bounces and complaints, 25 in production; without it, bounces that arrive as mail are not seen.',
  }),
  spamFilter: computed(spamFilterUrl, none, {
    name: 'POSTERN_SPAM_FILTER',
    default: 'none',
    example: 'http://127.0.0.1:11333',
    description:
      'Rspamd (http://HOST:11333) or SpamAssassin (spamd://HOST:783), asked for its verdict on received mail. Without an answer within 5 s the mail has none.',
  }),
  submissionPort: setting(portOrOff, {
    name: 'POSTERN_SUBMISSION_PORT',
    default: 'off',
    description: 'Port where applications submit mail over SMTP with STARTTLS, usually 587.',
  }),
  submissionTlsPort: setting(portOrOff, {
    name: 'POSTERN_SUBMISSION_TLS_PORT',
    default: 'off',
    description: 'Port where applications submit mail over SMTP with TLS from the start, usually 465.',
  }),
  submissionRecipients: setting(wholeNumber('a number of recipients', 1, 1000), {
    name: 'POSTERN_SUBMISSION_RECIPIENTS',
    default: '1000',
    description:
      'Maximum recipients of one mail that is submitted over SMTP; a mail with more is refused for all of them.',
  }),
  submissionAllowClear: setting(yesOrNo, {
    name: 'POSTERN_SUBMISSION_ALLOW_CLEAR',
    default: 'false',
    description:
      'Whether applications on this machine may log in without TLS; other machines always need TLS.',
  }),
  smtpHost: computed(hostToListen, none, {
    name: 'POSTERN_SMTP_HOST',
    default: 'every address of the machine',
    example: '192.0.2.10',
    description: 'Address that the inbound and submission ports listen on.',
  }),
  smtpConnections: setting(wholeNumber('a number of connections', 1, 100000), {
    name: 'POSTERN_SMTP_CONNECTIONS',
    default: '1000',
    description:
      'Maximum client connections on both submission ports together that are not logged in, and as many that are, of which one organization can have half; the inbound port allows as many again.',
  }),
  smtpPerClient: setting(wholeNumber('a number of connections', 1, 100000), {
    name: 'POSTERN_SMTP_PER_CLIENT',
    default: '50',
    description:
      'Maximum connections from one client address (for IPv6, from one /64 network) that are not logged in; on the inbound port, at most an eighth of POSTERN_SMTP_CONNECTIONS.',
  }),
  smtpProxies: computed(proxyNetworks, (): string[] => [], {
    name: 'POSTERN_SMTP_PROXIES',
    default: 'none',
    example: '192.0.2.20',
    description:
      'Addresses and networks of load balancers; a connection from one to the inbound or submission ports must begin with a PROXY header (version 1).',
  }),
  tlsCert: computed(anyText, none, {
    name: 'POSTERN_TLS_CERT',
    default: 'a generated self-signed certificate',
    example: '/etc/letsencrypt/live/mail.example.org/fullchain.pem',
    description:
      'PEM file with the TLS certificate and chain of the inbound and submission ports; it is read again when it changes.',
  }),
  tlsKey: computed(anyText, none, {
    name: 'POSTERN_TLS_KEY',
    default: 'in the file of POSTERN_TLS_CERT',
    example: '/etc/letsencrypt/live/mail.example.org/privkey.pem',
    description: 'PEM file with the private key of the certificate.',
  }),
};
