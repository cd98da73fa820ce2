import test from 'ava';
import { clientNetwork } from '../../src/base/client-network.ts';

test('an IPv4 address is a network by itself, however it is written; of IPv6 the /64 is one', (t) => {
  const networks = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:DB8:0001:2::': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001:db8:1::3:4:192.0.2.1': '2001:db8:1:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    unknown: 'unknown',
    '': '',
  };
  for (const [address, network] of Object.entries(networks)) t.is(clientNetwork(address), network, address);
});
