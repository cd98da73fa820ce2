/**
 * The schema of a rule of the shaping file: the written form and description of each field, and which fields may be
 * combined. Messages say what to give instead; shaping-file.ts adds the rule and the line.
 */
import { z } from 'zod';
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import { asHostName, readDestination } from '#platform/values/host-name.ts';
import { duration } from './durations.ts';
import { type Grammar, oneOf, refuse, wholeNumber, wholeNumberOr } from './grammar.ts';
import { readBy } from './setting.ts';

/** Descriptions for docs/settings.md. */
const described = z.registry<{ description: string }>();

type Reader<T> = (text: string) => T;

function field<T>(read: Reader<T>, description: string) {
  return describe((value) => read(textOf(value)), description);
}

/** A value, or an array of values. */
function fieldOfSeveral(read: Reader<string>, description: string) {
  return describe((value) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.length > 0
      ? values.map((each) => read(textOf(each)))
      : refuse('[]', 'a value', 'at least one');
  }, description);
}

function describe<T>(read: (value: unknown) => T, description: string) {
  const schema = readBy(z.unknown(), read).optional();
  described.add(schema, { description });
  return schema;
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

const perMinute = wholeNumberOr('unlimited', 'a number of mails', 1, 1_000_000);

/** RFC 5321 section 4.5.3.2.7: a server need not wait longer than 5 minutes. */
const maxIdleMs = 5 * 60_000;

const idle: Reader<number> = (text) => {
  const value = /^[\d.]+(ms|s|m)$/i.test(text) ? duration.read(text) : Number.POSITIVE_INFINITY;
  return value <= maxIdleMs ? value : refuse(text, 'an idle time', 'a duration such as 5s, up to 5m');
};

const connections = wholeNumber('a number of connections', 1, 1000);

const { read: tls }: Grammar<DestinationShape['tls']> = oneOf('a TLS level', [
  'opportunistic',
  'encrypted',
  'verified',
  'off',
]);

const rule = z.strictObject({
  domain: fieldOfSeveral(domainName, 'Selects recipient domains; each becomes a destination of its own.'),
  mx: fieldOfSeveral(
    hostOrSuffix,
    'Selects domains by their MX hosts: each host must end in one of these (`.example.com`) or be one of them.',
  ),
  destination: fieldOfSeveral(
    destinationName,
    'Selects destinations by the name that `postern queue summary` shows.',
  ),
  name: field(
    givenName,
    'With `domain` or `mx`: the name of the destination. All domains with the same name share one destination.',
  ),
  connections: field(
    connections.read,
    'Maximum connections at once. In your own rules it may exceed `POSTERN_MTA_PER_DESTINATION`; in the built-in rules it is limited to that.',
  ),
  startWith: field(connections.read, 'Connections at first; the number grows while deliveries succeed.'),
  perMinute: field(perMinute.read, 'Maximum mails per minute, spread evenly, or `"unlimited"`.'),
  mailsPerConnection: field(
    wholeNumber('a number of mails', 1, 100_000).read,
    'Mails sent over a connection before it is replaced.',
  ),
  idle: field(idle, 'Time that an idle connection waits for its next mail, up to `5m`.'),
  tls: field(
    tls,
    'Minimum TLS level, whatever the sender requests: `opportunistic`, `encrypted` (any certificate) or `verified`; `off` never tries TLS.',
  ),
});

export const shapingFields = Object.entries(rule.shape).map(([name, schema]) => ({
  name,
  description: described.get(schema)!.description,
}));

export type WrittenRule = z.output<typeof rule>;

const subjects = ['domain', 'mx', 'destination'] as const;

export const shapingRule = rule.check(({ value, issues }) => {
  const addIssue = (path: string[], message: string) =>
    issues.push({ code: 'custom', input: value, path, message });
  const given = subjects.filter((subject) => value[subject] !== undefined);
  if (given.length !== 1) {
    const names = subjects.join(', ');
    const message =
      given.length === 0
        ? `selects no destination; give one of ${names}`
        : `has ${given.join(' and ')}; give only one of ${names}`;
    addIssue([], message);
  }
  if (value.destination && value.name !== undefined)
    addIssue(['name'], 'a destination already has a name; give the name in a rule by domain or mx');
  if (value.startWith !== undefined && value.startWith > (value.connections ?? value.startWith))
    addIssue(
      ['startWith'],
      `${value.startWith} is more than the ${value.connections} connections; give fewer`,
    );
});
