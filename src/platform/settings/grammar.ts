/**
 * The written forms of setting values: ports, domain names, addresses, switches. A Grammar reads a text that is trimmed and
 * not empty, or throws Refused with a message that says what to give instead. The printed text can be read again, except that
 * passwords and secrets are never printed or quoted in a message. setting-sources.ts knows names and sources.
 */

import { isIP, isIPv6 } from 'node:net';
import { networkText } from '#platform/base/net/client-network.ts';
import { bracketed } from '#platform/base/net/tcp-listen.ts';
import { headerOf, parseMailbox } from '#platform/values/address.ts';
import type { Mailbox } from '#platform/values/glossary.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { asHostName } from '#platform/values/host-name.ts';

export interface Grammar<T> {
  read(text: string): T;
  print(value: T): string;
  /** The value has several words; a JSON file may give them as an array. */
  list?: true;
}

export class Refused extends Error {
  override name = 'Refused';
}

export function refuse(text: string, what: string, give: string): never {
  throw new Refused(`${JSON.stringify(text)} is not ${what}; give ${give}${withoutHidden(text)}`);
}

/** The words of a list, separated by spaces, commas or both. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

function textOf<T extends string>(read: (text: string) => T): Grammar<T> {
  return { read, print: (value) => value };
}

export function listOf<T>(read: (word: string) => T, print: (value: T) => string = String): Grammar<T[]> {
  return {
    read: (text) => wordsOf(text).map(read),
    print: (values) => values.map(print).join(' '),
    list: true,
  };
}

export const anyText = textOf((text) => text);

export function wholeNumber(what: string, min: number, max: number): Grammar<number> {
  const give = `a whole number from ${min} to ${max}`;
  return { read: (text) => numberBetween(text, min, max) ?? refuse(text, what, give), print: String };
}

/** `word` stands for null. */
export function wholeNumberOr(word: string, what: string, min: number, max: number): Grammar<number | null> {
  const give = `"${word}" or a whole number from ${min} to ${max}`;
  return {
    read(text) {
      return text.toLowerCase() === word ? null : (numberBetween(text, min, max) ?? refuse(text, what, give));
    },
    print: (value) => (value === null ? word : String(value)),
  };
}

function numberBetween(text: string, min: number, max: number): number | null {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : null;
}

const units = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Bytes; K, M, G and T are powers of 1,024. */
export const byteSize: Grammar<number> = {
  read(text) {
    const parts = /^(\d{1,6})([kmgt])?(i?b)?$/i.exec(text);
    if (!parts) return refuse(text, 'a size', 'a whole number of K, M, G or T, such as 100M');
    const unit = parts[2]?.toLowerCase() as keyof typeof units | undefined;
    return Number(parts[1]) * (unit ? units[unit] : 1);
  },
  print(value) {
    const unit = (['t', 'g', 'm', 'k'] as const).find((one) => value > 0 && value % units[one] === 0);
    return unit ? `${value / units[unit]}${unit.toUpperCase()}` : String(value);
  },
};

/** Port 0 means any free port, which makes sense only for listening. */
export const portToListen = wholeNumber('a port', 0, 65535);
export const portToReach = wholeNumber('a port', 1, 65535);

export const portOrOff = wholeNumberOr('off', 'a port', 1, 65535);

/** Without a name. */
export const mailAddress = textOf((text) => {
  const mailbox = parseMailbox(text);
  if (mailbox?.address === trimBlanks(text)) return mailbox.address;
  return refuse(text, 'a mail address', 'one such as admin@example.org');
});

/** An address with or without a name, or off. */
export const mailboxOrOff: Grammar<Mailbox | null> = {
  read(text) {
    if (text.trim().toLowerCase() === 'off') return null;
    return (
      parseMailbox(text) ??
      refuse(text, 'a sender', 'off, or a sender such as Acme Mail <tls@mail.example.org>')
    );
  },
  print: (mailbox) => (mailbox === null ? 'off' : headerOf(mailbox)),
};

export const yesOrNo: Grammar<boolean> = {
  read(text) {
    if (/^(true|yes|on|1)$/i.test(text)) return true;
    if (/^(false|no|off|0)$/i.test(text)) return false;
    return refuse(text, 'a switch', 'true or false');
  },
  print: String,
};

export function oneOf<const T extends string>(what: string, choices: readonly T[]): Grammar<T> {
  const give = `one of ${choices.join(', ')}`;
  return textOf((text) => choices.find((each) => each === text.toLowerCase()) ?? refuse(text, what, give));
}

/** One or more of the choices, each once. */
export function eachOf<const T extends string>(what: string, choices: readonly T[]): Grammar<T[]> {
  return choiceOf(what, choices, `one or more of ${choices.join(', ')}`);
}

/** Any of the choices, each once; `empty` stands for none of them. */
export function someOf<const T extends string>(
  what: string,
  choices: readonly T[],
  empty = 'off',
): Grammar<T[]> {
  const some = choiceOf(what, choices, `any of ${choices.join(', ')}, or "${empty}"`);
  return {
    ...some,
    read: (text) => (text.toLowerCase() === empty ? [] : some.read(text)),
    print: (value) => (value.length === 0 ? empty : some.print(value)),
  };
}

function choiceOf<T extends string>(what: string, choices: readonly T[], give: string): Grammar<T[]> {
  const words = listOf(
    (word) => choices.find((each) => each === word.toLowerCase()) ?? refuse(word, what, give),
  );
  return {
    ...words,
    read(text) {
      const found = words.read(text);
      return found.length > 0 ? [...new Set(found)] : refuse(text, what, give);
    },
  };
}

export const domainName = textOf((text) => {
  const name = asHostName(text);
  return name?.includes('.') ? name : refuse(text, 'a domain name', 'a name such as mail.example.org');
});

export const hostToListen = textOf((text) => {
  if (isIP(text)) return text;
  const give = 'an IP address such as 127.0.0.1, 0.0.0.0 or ::, or a host name';
  return asHostName(text) ?? refuse(text, 'an address to listen on', give);
});

function dnsServer(word: string): string {
  const give = 'IP addresses with or without a port, such as 127.0.0.1:5353 or [2001:db8::1]:53';
  const pattern = /^\[(?<v6>[^\]]*)\](?::(?<port>\d+))?$|^(?<host>[^:[\]]+)(?::(?<port>\d+))?$/;
  const parts = pattern.exec(word)?.groups;
  // A DNS server must be given by its address; `localhost` is the one name that needs no lookup.
  const host = isIPv6(word) ? word : (parts?.v6 ?? parts?.host?.replace(/^localhost$/i, '127.0.0.1') ?? '');
  const port = Number(parts?.port ?? 53);
  const isAddress = parts?.v6 === undefined ? isIP(host) !== 0 : isIPv6(host);
  if (!isAddress || port < 1 || port > 65535) return refuse(word, 'a DNS server', give);
  return `${bracketed(host)}:${port}`;
}

export const dnsServers = listOf(dnsServer);
export const dnsServerAddress = textOf(dnsServer);

/** Whoever is in one of them is believed about the address of a client, so that it cannot be everybody. */
export const proxyNetworks = listOf((word) => {
  const give = 'addresses or networks such as 192.0.2.20 or 10.0.0.0/8';
  const network = networkText(word) ?? refuse(word, 'an IP address or a network', give);
  if (/\/0$/.test(network)) refuse(word, 'a network of proxies, because it contains every client', give);
  return network;
});

export const webAddress = textOf((text) => {
  const url = URL.parse(text);
  const isPlain = !url?.username && !url?.password && !/[?#]/.test(text);
  // The dashboard and other services' APIs are at paths of their own.
  const hasPath = /[^/]/.test(url?.pathname ?? '');
  if (url === null || !isPlain || hasPath || !/^https?:\/\//i.test(text)) {
    const give = 'http(s)://HOST without a path, such as https://mail.example.org';
    return refuse(withoutPassword(text), 'a web address', give);
  }
  return url.origin;
});

/** Rspamd's or spamd's address. */
export const spamFilterUrl = textOf((text) => {
  const url = URL.parse(text);
  const isKnown = url !== null && ['http:', 'https:', 'spamd:'].includes(url.protocol);
  if (!isKnown || url.hostname === '' || url.username || /[?#]/.test(text) || /[^/]/.test(url.pathname))
    return refuse(
      withoutPassword(text),
      "a spam filter's address",
      'http://HOST:11333 (Rspamd) or spamd://HOST:783',
    );
  return url.protocol === 'spamd:' ? `spamd://${url.hostname}:${url.port || 783}` : url.origin;
});

/** RFC 8555 section 6.1: ACME needs HTTPS. */
export const httpsUrl = textOf((text) => {
  const url = URL.parse(text);
  if (url?.protocol === 'https:' && !url.username && !url.password) return url.href;
  return refuse(withoutPassword(text), 'an HTTPS URL', 'https://HOST/PATH');
});

/** Replaces everything up to the last @, because a password may contain an unescaped @. */
function withoutPassword(url: string): string {
  return url.replace(/^([a-z0-9+.-]+:\/\/[^:@/]*):.*@/is, '$1:***@').replace(/(password=)[^&#]*/gi, '$1***');
}

export const postgresUrl: Grammar<string> = {
  read(text) {
    if (/^postgres(ql)?:\/\//i.test(text) && URL.canParse(text)) return text;
    const give = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE, or nothing for SQLite';
    throw new Refused(`the value is not a PostgreSQL URL; give ${give}`);
  },
  print: withoutPassword,
};

const secretLength = 16;

export const secretText: Grammar<string> = {
  read(text) {
    if (text.length >= secretLength) return text;
    throw new Refused(`the value is too short for a secret; give ${secretLength} characters or more`);
  },
  print: () => '***',
};

/** A secret, or the absolute path of a file that contains it. */
export const secretOrFile: Grammar<string> = {
  read: (text) => (isFile(text) ? text : secretText.read(text)),
  print: (value) => (isFile(value) ? value : '***'),
};

export const isFile = (value: string) => value.startsWith('/');

export const secretTexts = listOf(secretText.read, secretText.print);
