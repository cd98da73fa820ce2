/** The large providers that receive mail, found by the destination's name; the statistics and the warm-up of addresses use them. */
import { organizationalDomain } from '#platform/values/organizational-domain.ts';

/** Titles of names in config/shaping.jsonc, and of the domains of MX hosts. */
const titles = new Map([
  ['google', 'Gmail'],
  ['google.com', 'Gmail'],
  ['googlemail.com', 'Gmail'],
  ['outlook.com', 'Microsoft'],
  ['microsoft-365', 'Microsoft'],
  ['mx.microsoft', 'Microsoft'],
  ['yahoo', 'Yahoo'],
  ['yahoodns.net', 'Yahoo'],
  ['yahoo.co.jp', 'Yahoo Japan'],
  ['apple', 'Apple'],
  ['icloud.com', 'Apple'],
]);

/** A destination is named by a shaping rule or by its hosts, which have the domain of their provider. */
export function providerOf(destination: string | undefined): string {
  if (destination === undefined) return 'unknown';
  const domain = organizationalDomain(destination.split(',')[0]!);
  return titles.get(destination) ?? titles.get(domain) ?? domain;
}

/** The groups of receivers that a new address is made known to, each by itself. */
const receiverGroups = ['Gmail', 'Microsoft', 'Yahoo', 'Apple', 'others'] as const;

export type ReceiverGroup = (typeof receiverGroups)[number];

export function receiverGroupOf(destination: string | undefined): ReceiverGroup {
  const provider = providerOf(destination);
  return receiverGroups.find((group) => group === provider) ?? 'others';
}
