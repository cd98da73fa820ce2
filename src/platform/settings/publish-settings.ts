/** The settings with which `postern domain publish` changes DNS records; the server itself does not use them. */
import { none } from './defaults.ts';
import { dnsServerAddress, secretOrFile } from './grammar.ts';
import { computed } from './setting.ts';

export const publishSettings = {
  dnsUpdateServer: computed(dnsServerAddress, none, {
    name: 'POSTERN_DNS_UPDATE_SERVER',
    default: 'none',
    example: '192.0.2.53:53',
    description:
      'Primary DNS server (IP:PORT) that takes the updates of `domain publish` (RFC 2136), over TCP and signed with POSTERN_DNS_UPDATE_KEY.',
  }),
  dnsUpdateKey: computed(secretOrFile, none, {
    name: 'POSTERN_DNS_UPDATE_KEY',
    default: 'none',
    example: '/etc/postern/update.key',
    description:
      'TSIG key (hmac-sha256) for POSTERN_DNS_UPDATE_SERVER: NAME:SECRET with the secret in Base64, or a file that `tsig-keygen` has written.',
  }),
  cloudflareToken: computed(secretOrFile, none, {
    name: 'POSTERN_CLOUDFLARE_TOKEN',
    default: 'none',
    example: '/etc/postern/cloudflare.token',
    description:
      'API token of Cloudflare with the rights Zone:Read and DNS:Edit for `domain publish`, or a file that contains it.',
  }),
};
