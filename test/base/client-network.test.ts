import test from 'ava';
import { clientNetwork } from '../../src/base/client-network.ts';
import { table } from '../lab/table.ts';

test('the network is the address itself for IPv4, however it is written, and the /64 for IPv6', (t) => {
  const networks = Object.fromEntries(table<[string, string]>('base/client-networks'));
  for (const [address, network] of Object.entries(networks)) t.is(clientNetwork(address), network, address);
});
