/**
 * Parsers for arguments and option values, in commander's form: they turn text into a value, or throw an
 * InvalidArgumentError that says what to give instead. They look nothing up.
 */
import { InvalidArgumentError, Option } from 'commander';
import { parseScopes } from '#accounts/api-keys.ts';
import { tlsFloors } from '#accounts/domains.ts';
import { states } from '#cli/maillog/log-filter.ts';
import { isOneLine } from '#platform/base/sanitize.ts';
import { duration } from '#platform/settings/durations.ts';
import {
  oneOf,
  postgresUrl as postgresGrammar,
  Refused,
  refuse,
  wholeNumber,
} from '#platform/settings/grammar.ts';
import { poolName } from '#platform/settings/source-address-grammar.ts';
import { domainOf, toDomain } from '#platform/values/address.ts';
import { eventTypes as allEventTypes } from '#platform/values/glossary.ts';
import { readDestination } from '#platform/values/host-name.ts';
import { readTime, timeForm } from '#platform/values/read-time.ts';

/** Makes a parser of a function that throws Refused, as the grammars of settings do. */
export function parser<T>(read: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return read(text.trim());
    } catch (error) {
      throw error instanceof Refused ? new InvalidArgumentError(error.message) : error;
    }
  };
}

/** Commander reads null as "no value", so "no limit" is a word. */
export type OrUnlimited = number | 'unlimited';

/** The form of the database, in which null is "no limit". */
export function toLimit<T>(value: T | 'unlimited'): T | null {
  return value === 'unlimited' ? null : (value as T);
}

function orUnlimited(what: string, max: number): (text: string) => OrUnlimited {
  return parser<OrUnlimited>((text) => {
    if (text.toLowerCase() === 'unlimited') return 'unlimited';
    if (/^\d+$/.test(text)) return wholeNumber(what, 0, max).read(text);
    return refuse(text, what, 'a whole number, or "unlimited"');
  });
}

const maxCredits = 999_999_999_999;

export const credits = parser(wholeNumber('a number of credits', 0, maxCredits).read);
export const quota = orUnlimited('a quota', maxCredits);
/** The columns of limits have 32 bits. */
export const limit = orUnlimited('a limit', 2 ** 31 - 1);

/** A change of the wallet. A negative number takes back credits that were granted by mistake. */
export const movement = parser((text) => {
  if (/^[+-]?\d{1,12}$/.test(text) && Number(text) !== 0) return Number(text);
  return refuse(text, 'a number of credits', 'a whole number, negative to remove credits');
});

export function lines(min: number, max: number): (text: string) => number {
  return parser(wholeNumber('a number of lines', min, max).read);
}

/** A parser that knows its values, for the completion of command lines. */
export type Choice<T> = ((text: string) => T) & { choices: readonly T[] };

export function choice<const T extends string>(what: string, choices: readonly T[]): Choice<T> {
  return Object.assign(parser(oneOf(what, choices).read), { choices });
}

export const onOff = choice('a switch', ['on', 'off']);

export const tlsFloor = choice('a TLS level', tlsFloors);
export const tlsArgument = `<${tlsFloors.join('|')}>`;
export const tlsIs =
  'opportunistic: TLS if the host offers it; encrypted: TLS with any certificate; verified: TLS with a valid certificate';

/** An IP pool. */
export const pool = parser(poolName.read);

function oneLine(what: string, maxLength: number): (text: string) => string {
  return parser((text) =>
    isOneLine(text, maxLength)
      ? text
      : refuse(text, what, `some text of one line, ${maxLength} characters at most`),
  );
}

export const name = oneLine('a name', 200);
/** A time with an offset. */
export const timeWithOffset = parser((text) => {
  return readTime(text) ?? refuse(text, 'a time', timeForm);
});

/** Required by administrative actions; `email why` and the events show it. */
export const reason = oneLine('a reason', 500);

export const domain = parser(
  (text) => toDomain(text.replace(/\.$/, '')) ?? refuse(text, 'a domain name', 'one such as example.com'),
);

export const hostOrNone = parser((text) => (text.toLowerCase() === 'none' ? 'none' : domain(text)));

export const address = parser((text) =>
  domainOf(text) === null ? refuse(text, 'an email address', 'one such as ann@example.com') : text,
);

export const timeSpan = parser(duration.read);

/** `byDefault`: as it is written. */
export function spanOption(flags: string, description: string, byDefault?: string): Option {
  const option = new Option(flags, description).argParser(timeSpan);
  return byDefault === undefined ? option : option.default(duration.read(byDefault), byDefault);
}

/** A refusal does not quote the URL, because it contains a password. */
export const postgresUrl = parser((text) => {
  try {
    return postgresGrammar.read(text);
  } catch {
    throw new Refused('the value is not a PostgreSQL URL; give postgres://USER:PASSWORD@HOST:PORT/DATABASE');
  }
});

export const destination = parser(
  (text) =>
    readDestination(text) ??
    refuse(text, 'a destination', 'a recipient domain, or a name that `postern queue summary` shows'),
);

export const mailsPerMinute = parser(wholeNumber('a number of mails', 1, 1_000_000).read);

export const url = parser((text) => {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  return refuse(text, 'a URL', 'one such as http://localhost:3000/webhooks');
});

/** In the form of Standard Webhooks: 24 to 64 bytes. */
export const webhookSecret = parser((text) => {
  const { length } = Buffer.from(text.replace(/^whsec_/, ''), 'base64');
  if (/^whsec_[\w+/-]+=*$/.test(text) && length >= 24 && length <= 64) return text;
  return refuse(text, 'a secret', '"whsec_" and 24 to 64 bytes in base64');
});

export type Moment = { at: number } | { ago: number };

/** A time, or how long ago it was. */
export const moment = parser<Moment>((text) => {
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))) return { at: Date.parse(text) };
  try {
    return { ago: duration.read(text) };
  } catch {
    return refuse(text, 'a time', 'one such as 2026-01-31T12:00:00Z, or how long ago: 30m, 2h, 3d');
  }
});

export function timeOf(value: Moment, now: number): number {
  return 'at' in value ? value.at : now - value.ago;
}

/** One address, or a domain with all its addresses. */
function addressOrDomainFor(what: string): (text: string) => string {
  return parser((text) => {
    if (domainOf(text) !== null) return text;
    return toDomain(text) ?? refuse(text, what, 'an address such as ann@example.com, or a domain');
  });
}

export const senderOrDomain = addressOrDomainFor('a sender');
export const recipientOrDomain = addressOrDomainFor('a recipient');

/** Parses an option that may be given several times: adds to the values before. */
export function listOf<T>(read: ((text: string) => T | T[]) | Choice<T>) {
  const parse = (text: string, before: T[] = []) => [...new Set(before.concat(read(text)))];
  return Object.assign(parse, 'choices' in read ? { choices: read.choices } : {});
}

export const eventTypes = listOf(choice('a type of event', allEventTypes));
export const logStates = listOf(choice('a state', states));

export const scopes = listOf((text) => {
  const parsed = parseScopes([text.trim()]);
  if ('problem' in parsed) throw new InvalidArgumentError(parsed.problem);
  return parsed;
});

/** Domains, as the scopes that they stand for. */
export const domainScopes = listOf((text) => scopes(`domain_scope:${domain(text)}`));
