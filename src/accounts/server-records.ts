/** The DNS records of the server itself: its name and addresses, and the return path of its bounces. */
import { isIPv6 } from 'node:net';
import { reverseName } from '#platform/values/reverse-name.ts';
import type { WantedRecord } from './check-records.ts';
import type { Names } from './domains.ts';

/** `addresses`: those that other hosts see. */
export function serverRecords(
  { hostname, returnPathDomain }: Names,
  addresses: readonly string[],
): WantedRecord[] {
  return [
    ...addresses.map(
      (address): WantedRecord => ({
        type: isIPv6(address) ? 'AAAA' : 'A',
        name: hostname,
        value: address,
        purpose: 'address',
        note: 'Leads to this server, for the certificate and for receivers that check its name.',
        required: true,
      }),
    ),
    ...addresses.map(
      (address): WantedRecord => ({
        type: 'PTR',
        name: reverseName(address),
        value: hostname,
        purpose: 'reverse',
        note: `Large providers refuse mail from ${address} without it.`,
        required: false,
      }),
    ),
    {
      type: 'MX',
      name: returnPathDomain,
      value: `10 ${hostname}`,
      purpose: 'bounces',
      note: 'Brings bounces back to this server. One record serves all domains.',
      required: false,
    },
    {
      type: 'TXT',
      name: returnPathDomain,
      value: `v=spf1 a:${hostname} ~all`,
      purpose: 'spf',
      note: 'Allows this server to send with its return path, which receivers check first.',
      required: false,
    },
  ];
}
