import test from 'ava';
import { clientNetwork } from '../../src/base/client-network.ts';

test('the network is the address itself for IPv4, however it is written, and the /64 for IPv6', (t) => {
  const networks = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:DB8:0001:2::': '2001:db8:1:2::/64',
    '2001:0DB8::1:0:0:0:2': '2001:db8:0:1::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001:db8:1::3:4:192.0.2.1': '2001:db8:1:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    unknown: 'unknown',
    '': '',
  };
  for (const [address, network] of Object.entries(networks)) t.is(clientNetwork(address), network, address);
});
