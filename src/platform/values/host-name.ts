/** Host names, and the names of destinations, in the form in which they are compared. */
import { domainToASCII } from 'node:url';

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The A-label form of a host name of one or more labels; null if the text is not one. An IP address is not one. */
export function asHostName(text: string): string | null {
  // domainToASCII reads ASCII like the host of a URL, so it would decode percent signs and hexadecimal numbers.
  const isASCII = /^[\x21-\x7e]*$/.test(text);
  const name = (isASCII ? text.toLowerCase() : domainToASCII(text)).replace(/\.$/, '');
  const labels = name.split('.');
  const isNumeric = /^\d+$/.test(labels.at(-1) ?? '');
  return name.length <= 253 && !isNumeric && labels.every((each) => label.test(each)) ? name : null;
}

/**
 * A recipient domain or the name of a destination: its hosts separated by commas, or the name that a shaping rule gives it.
 * Hosts may be in any order; the result has them sorted.
 */
export function readDestination(text: string): string | null {
  const names = text.split(',').map((each) => asHostName(each.trim()));
  return names.includes(null) ? null : [...new Set(names)].sort().join(',');
}
