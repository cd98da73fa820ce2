/**
 * The written forms of single settings: a port, a domain name, an address, yes or no. A Grammar reads a text that
 * is already trimmed and not empty, or throws Refused with a sentence that says what to give instead. It prints
 * values so that they read back the same, except that no password and no secret is ever printed, nor quoted in
 * a refusal. Grammars know neither the settings' names nor where a text came from.
 */
import { isIP, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';

export interface Grammar<T> {
  read(text: string): T;
  print(value: T): string;
  /** Several words: in a file it may be written as an array too. */
  list?: true;
}

export class Refused extends Error {
  override name = 'Refused';
}

export function refuse(text: string, what: string, give: string): never {
  throw new Refused(`${JSON.stringify(text)} is not ${what}; give ${give}`);
}

/** The words of a list, which spaces, commas or both may part. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** Names, labels and reasons are for people: anything that fits a line. */
export function isOneLine(text: string, longest: number): boolean {
  return text !== '' && text.length <= longest && !/\p{Cc}/u.test(text);
}

export const anyText: Grammar<string> = { read: (text) => text, print: (value) => value };

export function wholeNumber(what: string, min: number, max: number): Grammar<number> {
  return {
    read(text) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      return refuse(text, what, `a whole number from ${min} to ${max}`);
    },
    print: String,
  };
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

/** Port 0 is whichever is free: good for listening, meaningless for connecting. */
export const portToListen = wholeNumber('a port', 0, 65535);
export const portToReach = wholeNumber('a port', 1, 65535);

export const portOrOff: Grammar<number | null> = {
  read(text) {
    if (text.toLowerCase() === 'off') return null;
    if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65535) return Number(text);
    return refuse(text, 'a port', '"off" or a whole number from 1 to 65535');
  },
  print: (value) => (value === null ? 'off' : String(value)),
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
  return {
    read(text) {
      const choice = choices.find((each) => each === text.toLowerCase());
      return choice ?? refuse(text, what, `one of ${choices.join(', ')}`);
    },
    print: (value) => value,
  };
}

/** One or more of the choices, each once. */
export function eachOf<const T extends string>(what: string, choices: readonly T[]): Grammar<T[]> {
  return choiceOf(what, choices, `one or more of ${choices.join(', ')}`);
}

/** Any of the choices, each once, or `off` for none. */
export function someOf<const T extends string>(what: string, choices: readonly T[]): Grammar<T[]> {
  const some = choiceOf(what, choices, `any of ${choices.join(', ')}, or "off"`);
  return {
    ...some,
    read: (text) => (text.toLowerCase() === 'off' ? [] : some.read(text)),
    print: (value) => (value.length === 0 ? 'off' : some.print(value)),
  };
}

function choiceOf<T extends string>(what: string, choices: readonly T[], give: string): Grammar<T[]> {
  return {
    read(text) {
      const found = wordsOf(text).map(
        (word) => choices.find((each) => each === word.toLowerCase()) ?? refuse(word, what, give),
      );
      return found.length > 0 ? [...new Set(found)] : refuse(text, what, give);
    },
    print: (value) => value.join(' '),
    list: true,
  };
}

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The A-label form of a name of one label or more, or null where it is none; an IP address is none. */
export function asHostName(text: string): string | null {
  // domainToASCII reads plain ASCII as a URL's host does, percent signs and hexadecimal numbers included.
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

export const domainName: Grammar<string> = {
  read(text) {
    const name = asHostName(text);
    return name?.includes('.') ? name : refuse(text, 'a domain name', 'a name such as mail.example.org');
  },
  print: (value) => value,
};

export const hostToListen: Grammar<string> = {
  read(text) {
    if (isIP(text)) return text;
    const give = 'an IP address such as 127.0.0.1, 0.0.0.0 or ::, or a host name';
    return asHostName(text) ?? refuse(text, 'an address to listen on', give);
  },
  print: (value) => value,
};

/** A host as it stands in a URL or before a port. */
export function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

function dnsServer(word: string): string {
  const give = 'IP addresses with or without a port, such as 127.0.0.1:5353 or [2001:db8::1]:53';
  const parts = /^\[(?<v6>[^\]]*)\](?::(?<port>\d+))?$|^(?<host>[^:[\]]+)(?::(?<port>\d+))?$/.exec(
    word,
  )?.groups;
  // A resolver cannot be looked up by name before there is a resolver; this one name needs no look-up.
  const host = isIPv6(word) ? word : (parts?.v6 ?? parts?.host?.replace(/^localhost$/i, '127.0.0.1') ?? '');
  const port = Number(parts?.port ?? 53);
  const isAddress = parts?.v6 === undefined ? isIP(host) !== 0 : isIPv6(host);
  if (!isAddress || port < 1 || port > 65535) return refuse(word, 'a DNS server', give);
  return `${bracketed(host)}:${port}`;
}

export const dnsServers: Grammar<string[]> = {
  read: (text) => wordsOf(text).map(dnsServer),
  print: (servers) => servers.join(' '),
  list: true,
};

export const addresses: Grammar<string[]> = {
  read(text) {
    const words = wordsOf(text);
    const wrong = words.find((word) => isIP(word) === 0);
    return wrong === undefined ? words : refuse(wrong, 'an IP address', 'addresses such as 192.0.2.20');
  },
  print: (value) => value.join(' '),
  list: true,
};

export const webAddress: Grammar<string> = {
  read(text) {
    const url = URL.canParse(text) ? new URL(text) : null;
    const isPlain = url !== null && !url.username && !url.password && !/[?#]/.test(text);
    if (url === null || !isPlain || !/^https?:\/\//i.test(text)) {
      return refuse(
        withoutPassword(text),
        'a web address',
        'http(s)://HOST, with a path at most, such as https://mail.example.org',
      );
    }
    return url.origin + url.pathname.replace(/\/+$/, '');
  },
  print: (value) => value,
};

/** Reads to the last @, so that a password with unescaped characters is hidden whole. */
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

export const secretTexts: Grammar<string[]> = {
  read: (text) => wordsOf(text).map(secretText.read),
  print: (value) => value.map(secretText.print).join(' '),
  list: true,
};
