/** The settings of the certificates that the server gets itself (ACME), and of the web ports that use them. */
import { none } from './defaults.ts';
import { anyText, hostToListen, httpsUrl, mailAddress, portOrOff } from './grammar.ts';
import { computed, setting } from './setting.ts';

export const acmeSettings = {
  acme: computed(mailAddress, none, {
    name: 'POSTERN_ACME',
    default: 'off: a proxy in front has the certificates',
    example: 'admin@example.org',
    description:
      "Mail address of the operator for the certificate authority; it turns on certificates by ACME for every host of this server, with the web ports below, and means that you accept the authority's terms of service.",
  }),
  acmeDirectory: setting(httpsUrl, {
    name: 'POSTERN_ACME_DIRECTORY',
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description:
      "URL of the authority's ACME directory; https://acme-staging-v02.api.letsencrypt.org/directory is Let's Encrypt's for tests, whose certificates browsers do not trust.",
  }),
  acmeCa: computed(anyText, none, {
    name: 'POSTERN_ACME_CA',
    default: "Node's certificate authorities",
    example: '/etc/postern/acme-ca.pem',
    description:
      'PEM file with the certificate authority that the directory itself is served with, for an authority of your own; trusted for nothing else.',
  }),
  acmeHost: computed(hostToListen, none, {
    name: 'POSTERN_ACME_HOST',
    default: 'every address of the machine',
    example: '192.0.2.10',
    description: 'Address that the two web ports listen on.',
  }),
  acmeHttpPort: setting(portOrOff, {
    name: 'POSTERN_ACME_HTTP_PORT',
    default: '80',
    description:
      'Port that answers the authority (HTTP-01, which always comes to port 80) and redirects browsers to HTTPS; off leaves the proof to the HTTPS port.',
  }),
  acmeHttpsPort: setting(portOrOff, {
    name: 'POSTERN_ACME_HTTPS_PORT',
    default: '443',
    description:
      'Port of the API, the dashboard, tracking links and MTA-STS policies over HTTPS; it also answers the authority (TLS-ALPN-01, which always comes to port 443).',
  }),
};

/** All of them as one text: if it changes, what was refused may succeed. */
export function acmeSettingsOf(config: Record<keyof typeof acmeSettings, unknown>): string {
  return Object.keys(acmeSettings)
    .map((name) => config[name as keyof typeof acmeSettings])
    .join(' ');
}
