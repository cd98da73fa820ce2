/**
 * The written forms of arguments and option values, as commander wants its parsers: a text in, a value out, or an
 * InvalidArgumentError with a sentence that says what to give instead. They look nothing up.
 */
import { InvalidArgumentError } from 'commander';
import { parseScopes } from '../../accounts/api-keys.ts';
import { tlsFloors } from '../../accounts/domains.ts';
import { eventTypes as allEventTypes, type EventType } from '../../glossary.ts';
import { domainOf, toDomain } from '../../mail/address.ts';
import { readDestination } from '../../operate/explain/action-words.ts';
import { duration } from '../../settings/durations.ts';
import {
  type Grammar,
  isOneLine,
  oneOf,
  postgresUrl as postgresGrammar,
  Refused,
  refuse,
  wholeNumber,
} from '../../settings/grammar.ts';
import { poolName } from '../../settings/source-address-grammar.ts';
import { states } from '../maillog/log-filter.ts';

/** A grammar of settings, as a parser of commander's. */
function parser<T>(grammar: Pick<Grammar<T>, 'read'>): (text: string) => T {
  return (text) => {
    try {
      return grammar.read(text.trim());
    } catch (error) {
      throw error instanceof Refused ? new InvalidArgumentError(error.message) : error;
    }
  };
}

/** A word, since commander makes nothing of a null. */
export type OrUnlimited = number | 'unlimited';

/** As the database has it: null is no limit. */
export function toLimit<T>(value: T | 'unlimited'): T | null {
  return value === 'unlimited' ? null : (value as T);
}

function orUnlimited(what: string, max: number): (text: string) => OrUnlimited {
  const number = wholeNumber(what, 0, max);
  return parser<OrUnlimited>({
    read(text) {
      if (text.toLowerCase() === 'unlimited') return 'unlimited';
      if (/^\d+$/.test(text)) return number.read(text);
      return refuse(text, what, 'a whole number, or "unlimited"');
    },
  });
}

const maxCredits = 999_999_999_999;

export const credits = parser(wholeNumber('a number of credits', 0, maxCredits));
export const quota = orUnlimited('a quota', maxCredits);
/** The database keeps limits in 32 bits. */
export const limit = orUnlimited('a limit', 2 ** 31 - 1);

/** A movement of the wallet: a negative one takes back what was granted by mistake. */
export const movement = parser({
  read(text) {
    if (/^[+-]?\d{1,12}$/.test(text) && Number(text) !== 0) return Number(text);
    return refuse(text, 'a number of credits', 'a whole number, negative to remove credits');
  },
});

export function lines(min: number, max: number): (text: string) => number {
  return parser(wholeNumber('a number of lines', min, max));
}

export function choice<const T extends string>(what: string, choices: readonly T[]): (text: string) => T {
  return parser(oneOf(what, choices));
}

export const onOff = choice('a switch', ['on', 'off']);

export const tlsFloor = choice('a TLS level', tlsFloors);
export const tlsArgument = `<${tlsFloors.join('|')}>`;
export const tlsIs =
  'opportunistic: TLS if the host offers it; encrypted: TLS with any certificate; verified: TLS with a valid certificate';

/** A pool of source addresses. */
export const pool = parser(poolName);

const longestName = 200;
const longestReason = 500;

export const name = parser({
  read(text) {
    if (isOneLine(text, longestName)) return text;
    return refuse(text, 'a name', `some text of one line, ${longestName} characters at most`);
  },
});

export const domain = parser({
  read: (text) =>
    toDomain(text.replace(/\.$/, '')) ?? refuse(text, 'a domain name', 'one such as example.com'),
});

/** A word, as with limits. */
export const hostOrNone = parser({
  read: (text) => (text.toLowerCase() === 'none' ? 'none' : domain(text)),
});

export const address = parser({
  read: (text) =>
    domainOf(text) === null ? refuse(text, 'an email address', 'one such as ann@example.com') : text,
});

export const timeSpan = parser(duration);

/** Not said again where it is refused: it has a password in it. */
export const postgresUrl = parser({
  read(text) {
    try {
      return postgresGrammar.read(text);
    } catch {
      throw new Refused(
        'the value is not a PostgreSQL URL; give postgres://USER:PASSWORD@HOST:PORT/DATABASE',
      );
    }
  },
});

export const destination = parser({
  read: (text) =>
    readDestination(text) ??
    refuse(text, 'a destination', 'a recipient domain, or a name that `postern queue summary` shows'),
});

/** Administrative actions have one; it is told to whoever asks why. */
export const reason = parser({
  read(text) {
    if (isOneLine(text, longestReason)) return text;
    return refuse(text, 'a reason', `some text of one line, ${longestReason} characters at most`);
  },
});

/** Where an HTTP request may go. */
export const url = parser({
  read(text) {
    if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
    return refuse(text, 'a URL', 'one such as http://localhost:3000/webhooks');
  },
});

/** As Standard Webhooks writes them: 24 to 64 octets. */
export const webhookSecret = parser({
  read(text) {
    const { length } = Buffer.from(text.replace(/^whsec_/, ''), 'base64');
    if (/^whsec_[\w+/-]+=*$/.test(text) && length >= 24 && length <= 64) return text;
    return refuse(text, 'a secret', '"whsec_" and 24 to 64 octets in base64');
  },
});

const oneEventType = choice('a type of event', allEventTypes);

/** May be given several times, each adding to the list. */
export function eventTypes(text: string, before: EventType[] = []): EventType[] {
  return [...new Set([...before, oneEventType(text)])];
}

/** May be given several times, each adding to the list. */
export function scopes(text: string, before: string[] = []): string[] {
  const parsed = parseScopes([text.trim()]);
  if ('fault' in parsed) throw new InvalidArgumentError(parsed.fault);
  return [...new Set([...before, ...parsed])];
}

/** A time, or how long ago it was. */
export const moment = parser<{ at: number } | { ago: number }>({
  read(text) {
    if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))) return { at: Date.parse(text) };
    try {
      return { ago: duration.read(text) };
    } catch {
      return refuse(text, 'a time', 'one such as 2026-01-31T12:00:00Z, or how long ago: 30m, 2h, 3d');
    }
  },
});

/** Who a mail is from: an address, or a domain with all its addresses. */
export const senderOrDomain = parser({
  read(text) {
    if (domainOf(text) !== null) return text;
    return toDomain(text) ?? refuse(text, 'a sender', 'an address such as ann@example.com, or a domain');
  },
});

const oneLogState = choice('a state', states);

/** May be given several times, each adding to the list. */
export function logStates(text: string, before: string[] = []): string[] {
  return [...new Set([...before, oneLogState(text)])];
}

/** The same, each as the scope that it is short for. */
export function domainScopes(text: string, before: string[] = []): string[] {
  return scopes(`domain_scope:${domain(text)}`, before);
}
