import test from 'ava';
import { table } from '#lab/table.ts';
import { clientNetwork, isPublicAddress } from '#platform/base/net/client-network.ts';

test('the network is the address itself for IPv4, however it is written, and the /64 for IPv6', (t) => {
  const networks = Object.fromEntries(table<[string, string]>('base/client-networks'));
  for (const [address, network] of Object.entries(networks)) t.is(clientNetwork(address), network, address);
});

test('an address of the Internet is public, also if this machine has it; no other is', (t) => {
  for (const address of ['45.76.10.10', '8.8.8.8', '2a01:4f8::1', '::ffff:8.8.8.8'])
    t.true(isPublicAddress(address), address);
  const others = [
    '127.0.0.1',
    '10.0.0.1',
    '192.168.1.1',
    '169.254.1.1',
    '100.64.0.1',
    '192.0.2.1',
    '::1',
    'fe80::1',
    'fd00::1',
    '2001:db8::1',
    '::ffff:10.0.0.1',
    'localhost',
    '',
  ];
  for (const address of others) t.false(isPublicAddress(address), address);
});
