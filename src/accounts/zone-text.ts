/**
 * DNS records as text of a zone file (RFC 1035 section 5.1). All names are fully qualified, so that the text does not depend on
 * $ORIGIN; a comment before each group says in whose zone its records belong.
 */
import { organizationalDomain } from '#platform/values/organizational-domain.ts';

export interface ZoneRecord {
  type: string;
  name: string;
  value: string;
}

const ttlSeconds = 3600;
/** RFC 1035 section 3.3: the bytes of one character-string. */
const maxStringBytes = 255;

export function zoneText(records: readonly ZoneRecord[]): string {
  const groups = [...Map.groupBy(records, zoneOf)];
  return groups.map(([zone, all]) => `; ${zone}\n${all.map(zoneLine).join('')}`).join('\n');
}

function zoneOf({ type, name }: ZoneRecord): string {
  if (type === 'PTR') return "set by the provider of the address (reverse DNS, or the machine's panel)";
  return `in the zone of ${organizationalDomain(name)}`;
}

function zoneLine({ type, name, value }: ZoneRecord): string {
  return `${absolute(name)} ${ttlSeconds} IN ${type} ${zoneData(type, value)}\n`;
}

export function zoneData(type: string, value: string): string {
  switch (type) {
    case 'TXT':
      return characterStrings(value).map(quoted).join(' ');
    case 'MX':
    case 'CNAME':
    case 'PTR':
      return absolute(value);
    default:
      return value;
  }
}

const absolute = (name: string) => (name.endsWith('.') ? name : `${name}.`);

/** The strings of a TXT record, which readers join without a space (RFC 7208 section 3.3, RFC 6376 section 3.6.2.2). */
export function characterStrings(value: string): Buffer[] {
  const bytes = Buffer.from(value);
  const count = Math.max(Math.ceil(bytes.length / maxStringBytes), 1);
  return Array.from({ length: count }, (_, at) =>
    bytes.subarray(at * maxStringBytes, (at + 1) * maxStringBytes),
  );
}

/** Between quotation marks, `"`, `\` and what is not printable ASCII are escaped as a backslash and three digits (section 5.1). */
function quoted(bytes: Buffer): string {
  const text = bytes
    .toString('latin1')
    .replace(/["\\]|[^ -~]/g, (each) => `\\${String(each.charCodeAt(0)).padStart(3, '0')}`);
  return `"${text}"`;
}
