/** The client's address, and the proxies that are trusted to name it. */
import test from 'ava';
import { clientAddressOf, trustedProxies } from '#platform/base/net/client-address.ts';

const isTrusted = trustedProxies(['192.0.2.20', '2001:db8::20']);

for (const [peer, forwardedFor, client] of [
  ['198.51.100.7', '', '198.51.100.7'],
  ['198.51.100.7', '203.0.113.9', '198.51.100.7'],
  ['127.0.0.1', '203.0.113.9', '203.0.113.9'],
  ['::1', '203.0.113.9', '203.0.113.9'],
  ['192.0.2.20', '10.9.9.9, 203.0.113.9', '203.0.113.9'],
  ['::ffff:192.0.2.20', '2001:db8::9', '2001:db8::9'],
  ['2001:db8::20', '', '2001:db8::20'],
  ['192.0.2.21', '203.0.113.9', '192.0.2.21'],
  ['::ffff:198.51.100.7', '', '198.51.100.7'],
] as const) {
  test(`from ${peer}, X-Forwarded-For "${forwardedFor}": ${client}`, (t) => {
    t.is(clientAddressOf(peer, forwardedFor, isTrusted), client);
  });
}
