/** The settings of the HTTP port: the API, the dialects and the dashboard; and of the URLs that are given to us. */
import { dialectNames } from '#platform/values/glossary.ts';
import { none } from './defaults.ts';
import { duration } from './durations.ts';
import {
  hostToListen,
  portToListen,
  proxyNetworks,
  someOf,
  webAddress,
  wholeNumber,
  yesOrNo,
} from './grammar.ts';
import { computed, setting } from './setting.ts';

export const httpSettings = {
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
  httpConcurrency: setting(wholeNumber('a number of sends', 2, 100000), {
    name: 'POSTERN_HTTP_CONCURRENCY',
    default: '1000',
    description: 'Maximum send requests in progress; further requests wait briefly, then get a 429 response.',
  }),
  dialects: setting(someOf('a dialect', dialectNames, 'none'), {
    name: 'POSTERN_DIALECTS',
    default: dialectNames.join(','),
    description:
      "Other services' APIs that are served, so that applications written for them need another address only; none serves no other API.",
  }),
  baseUrl: computed(webAddress, none, {
    name: 'POSTERN_BASE_URL',
    default: 'http://HOST:PORT, or https://HOSTNAME with POSTERN_ACME',
    example: 'https://mail.example.org',
    description: 'Public URL of the API and the dashboard; tracking links begin with it.',
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
};
