/**
 * The schema of a rule of the shaping file: each field's written form, with a sentence for README.md, and what may
 * stand together. Complaints say what to give instead; which rule it is and where it stands, they do not know.
 */
import { z } from 'zod';
import type { DestinationShape } from '../mail/destination-shape.ts';
import { duration } from './durations.ts';
import { asHostName, type Grammar, oneOf, Refused, readDestination, refuse, wholeNumber } from './grammar.ts';

/** A sentence on each field, for README.md. */
const described = z.registry<{ is: string }>();

type Reader<T> = (text: string) => T;

function field<T>(read: Reader<T>, is: string) {
  const schema = readBy((value) => read(textOf(value))).optional();
  described.add(schema, { is });
  return schema;
}

/** One, or an array of several. */
function fieldOfSeveral(read: Reader<string>, is: string) {
  const schema = readBy((value) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.length > 0
      ? values.map((each) => read(textOf(each)))
      : refuse('[]', 'a value', 'one at least');
  }).optional();
  described.add(schema, { is });
  return schema;
}

function readBy<T>(read: (value: unknown) => T) {
  return z.unknown().transform((value, context): T => {
    try {
      return read(value);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.trim() : JSON.stringify(value);
}

function domainName(text: string): string {
  const name = asHostName(text);
  return name?.includes('.') ? name : refuse(text, 'a domain name', 'one such as example.com');
}

function hostOrSuffix(text: string): string {
  const name = asHostName(text.replace(/^\./, ''));
  if (name === null) return refuse(text, 'a suffix of host names', 'one such as .example.com, or a host');
  return text.startsWith('.') ? `.${name}` : name;
}

function destinationName(text: string): string {
  const give = 'it as `postern queue summary` shows it, hosts separated by commas';
  return readDestination(text) ?? refuse(text, "a destination's name", give);
}

function givenName(text: string): string {
  const isName = /^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$/i.test(text);
  return isName
    ? text.toLowerCase()
    : refuse(text, 'a name', 'letters, digits, dots and hyphens, 64 at most');
}

const maxPerMinute = 1_000_000;

const perMinute: Reader<number | null> = (text) => {
  if (text.toLowerCase() === 'unlimited') return null;
  if (/^\d{1,7}$/.test(text) && Number(text) >= 1 && Number(text) <= maxPerMinute) return Number(text);
  return refuse(text, 'a number of mails', `a whole number from 1 to ${maxPerMinute}, or "unlimited"`);
};

/** RFC 5321 section 4.5.3.2.7: a server need not wait longer than 5 minutes. */
const longestIdle = 5 * 60_000;

const idle: Reader<number> = (text) => {
  const value = /^[\d.]+(ms|s|m)$/i.test(text) ? duration.read(text) : Number.POSITIVE_INFINITY;
  return value <= longestIdle
    ? value
    : refuse(text, 'a time to stay idle', 'a duration such as 5s, up to 5m');
};

const connections = wholeNumber('a number of connections', 1, 1000);

const { read: tls }: Grammar<DestinationShape['tls']> = oneOf('a demand of TLS', [
  'opportunistic',
  'encrypted',
  'verified',
  'off',
]);

const rule = z.strictObject({
  domain: fieldOfSeveral(domainName, 'For whom: recipient domains; each becomes a destination of its own.'),
  mx: fieldOfSeveral(
    hostOrSuffix,
    'For whom: the domains all of whose MX hosts end in one of these (`.example.com`), or are one of them.',
  ),
  destination: fieldOfSeveral(
    destinationName,
    'For whom: destinations, by the name that `postern queue summary` shows.',
  ),
  name: field(givenName, 'With `domain` or `mx`: what the destination is called. All of one name are one.'),
  connections: field(
    connections.read,
    'Connections at once at most; yours may be above `POSTERN_MTA_PER_DESTINATION`, the built-in ones never are.',
  ),
  startWith: field(connections.read, 'Connections to begin with; more as it goes well.'),
  perMinute: field(perMinute, 'Mails a minute at most, spread evenly, or `"unlimited"`.'),
  mailsPerConnection: field(
    wholeNumber('a number of mails', 1, 100_000).read,
    'Mails over one connection, then a new one.',
  ),
  idle: field(idle, 'How long a connection waits for its next mail, up to `5m`.'),
  tls: field(
    tls,
    'The least that is demanded, whatever the sender says: `opportunistic`, `encrypted` (any certificate), `verified`; `off` never tries TLS.',
  ),
});

export const shapingFields = Object.entries(rule.shape).map(([name, schema]) => ({
  name,
  is: described.get(schema)!.is,
}));

export type WrittenRule = z.output<typeof rule>;

const subjects = ['domain', 'mx', 'destination'] as const;

export const shapingRule = rule.check(({ value, issues }) => {
  const complain = (path: string[], message: string) =>
    issues.push({ code: 'custom', input: value, path, message });
  const given = subjects.filter((subject) => value[subject] !== undefined);
  if (given.length !== 1) {
    const what = given.length === 0 ? 'does not say whom it is for' : `says ${given.join(' and ')}`;
    complain([], `${what}; give one of ${subjects.join(', ')}`);
  }
  if (value.destination && value.name !== undefined)
    complain(['name'], 'a destination has its name already; name it in a rule by domain or mx');
  if (value.startWith !== undefined && value.startWith > (value.connections ?? value.startWith))
    complain(
      ['startWith'],
      `${value.startWith} is more than the ${value.connections} connections; give fewer`,
    );
});
