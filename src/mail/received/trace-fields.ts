/**
 * The two fields that we put on top of a received mail: Received (RFC 5321 section 4.4) and Authentication-Results (RFC 8601).
 * Fields of the second kind that came in under our name are forged, and are removed (section 5); no other byte changes.
 */
import { splice } from '#platform/base/splice.ts';
import type { Verdicts } from './received-mail.ts';

export interface Trace {
  hostname: string;
  id: string;
  at: number;
  helo: string;
  peer: string;
  isTls: boolean;
  isUtf8: boolean;
  recipients: readonly string[];
  sender: string;
}

/** The header with its last line end; all of a mail without an empty line. */
export function headerLength(raw: Buffer): number {
  if (raw[0] === 0x0d && raw[1] === 0x0a) return 0;
  const end = raw.indexOf('\r\n\r\n');
  return end < 0 ? raw.length : end + 2;
}

const received = /^received[ \t]*:.*(?:\r\n[ \t].*)*\r\n/gim;
const results = /^authentication-results[ \t]*:.*(?:\r\n[ \t].*)*\r\n/gim;
/** Only so much of a Received field is searched for our name. */
const longestHop = 1000;

/** How many hosts have passed the mail on, and how often we have. RFC 5321 section 6.3: many are a loop. */
export function countHops(header: string, hostname: string): { all: number; ours: number } {
  const hops = [...header.matchAll(received)].map(([text]) => text.slice(0, longestHop).toLowerCase());
  const by = ` by ${hostname.toLowerCase()} `;
  const ours = hops.filter((text) => text.replace(/[\s;]/g, ' ').includes(by));
  return { all: hops.length, ours: ours.length };
}

/** Removes the fields in which the sender speaks for us. */
export function withoutForged(raw: Buffer, header: string, hostname: string): Buffer {
  const forged = [...header.matchAll(results)].filter(
    ([text]) => authservId(text.slice(text.indexOf(':') + 1)) === hostname.toLowerCase(),
  );
  if (forged.length === 0) return raw;
  return splice(
    raw,
    forged.map(({ 0: text, index }) => ({
      start: index,
      end: index + text.length,
      bytes: Buffer.alloc(0),
    })),
  );
}

/** RFC 8601 section 2.2: a token or a quoted string, after comments and white space. */
function authservId(value: string): string {
  let at = 0;
  for (let depth = 0; at < value.length; at++) {
    const character = value[at]!;
    if (character === '\\' && depth > 0) at += 1;
    else if (character === '(') depth += 1;
    else if (character === ')' && depth > 0) depth -= 1;
    else if (depth === 0 && !/\s/.test(character)) break;
  }
  const id = /^(?:"([^"]{0,255})"|([^\s;()"]{1,255}))/.exec(value.slice(at, at + 300));
  return (id?.[1] ?? id?.[2] ?? '').replace(/\.$/, '').toLowerCase();
}

/** Both fields, folded, with their line ends. */
export function traceFields(trace: Trace, verdicts: Verdicts): Buffer {
  return Buffer.from(`${authenticationResults(trace, verdicts)}\r\n${receivedField(trace)}\r\n`);
}

function receivedField({ hostname, id, at, helo, peer, isTls, isUtf8, recipients }: Trace): string {
  const address = peer.includes(':') ? `IPv6:${peer}` : peer;
  // RFC 3848, RFC 6531 section 4.3.
  const protocol = `${isUtf8 ? 'UTF8SMTP' : 'ESMTP'}${isTls ? 'S' : ''}`;
  const lines = [
    `Received: from ${/^[\w.:[\]-]{1,255}$/.test(helo) ? helo : 'unknown'} ([${address}])`,
    ` by ${hostname} with ${protocol} id ${id}`,
  ];
  // Several recipients of one mail may not know of each other.
  if (recipients.length === 1) lines.push(` for <${recipients[0]}>`);
  return `${lines.join('\r\n')};\r\n ${new Date(at).toUTCString().replace('GMT', '+0000')}`;
}

function authenticationResults({ hostname, sender }: Trace, { spf, dkim, dmarc, arc }: Verdicts): string {
  const results = [
    result('spf', spf.result, [[sender === '' ? 'smtp.helo' : 'smtp.mailfrom', spf.domain]]),
    ...(dkim.length === 0 ? ['dkim=none'] : []),
    ...dkim.map(({ result: verdict, domain, selector }) =>
      result('dkim', verdict, [
        ['header.d', domain],
        ['header.s', selector],
      ]),
    ),
    result('dmarc', dmarc.result, [['header.from', dmarc.domain]], dmarc.policy && `p=${dmarc.policy}`),
    result('arc', arc.result, []),
  ];
  return `Authentication-Results: ${[hostname, ...results].join(';\r\n ')}`;
}

/** RFC 8601 section 2.2: a value that is not a dot-atom is quoted. The values are the sender's. */
function result(
  method: string,
  verdict: string,
  properties: [name: string, value: string | null][],
  comment: string | null = null,
): string {
  const texts = properties.flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${valueText(value)}`],
  );
  return [`${method}=${verdict}`, ...(comment === null ? [] : [`(${comment})`]), ...texts].join(' ');
}

function valueText(value: string): string {
  const text = value.slice(0, 255).replace(/[^\x20-\x7e]|["\\]/g, '?');
  return /^[\w.-]+$/.test(text) ? text : `"${text}"`;
}
