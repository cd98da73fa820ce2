/** What a mail needs of a host: why it cannot be offered there, or the commands of its envelope. */
import { isAscii, isUtf8 } from 'node:buffer';
import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Command } from './conversation.ts';
import type { Extensions } from './extensions.ts';

export interface Mail {
  from: string;
  to: string;
  message: Buffer;
  /** The host must pass the demand for TLS on (REQUIRETLS, RFC 8689). */
  requireTls?: boolean;
}

type Obstacle = Extract<
  SessionResult,
  { kind: 'too-big' | 'no-smtputf8' | 'no-utf8-header' | 'no-8bitmime' | 'no-requiretls' | 'internal' }
>;

/** A reason not to begin, such as a limit that the host has announced. */
export function obstacle(
  { from, to, message, requireTls }: Mail,
  { sizeLimit, has }: Extensions,
): Obstacle | null {
  // Addresses are checked on acceptance; a line end here would inject an SMTP command.
  if (/[\r\n]/.test(from + to)) {
    return { kind: 'internal', detail: 'an address of the envelope has a line end in it', afterDot: false };
  }
  if (sizeLimit > 0 && message.length > sizeLimit) {
    return {
      kind: 'too-big',
      detail: `the message has ${message.length} bytes, the host takes ${sizeLimit}`,
    };
  }
  if (isInternational(to) && !has('SMTPUTF8')) {
    return { kind: 'no-smtputf8', detail: 'the host does not take internationalized addresses (SMTPUTF8)' };
  }
  if (requireTls && !has('REQUIRETLS')) {
    return {
      kind: 'no-requiretls',
      detail: 'the mail demands TLS at every hop (REQUIRETLS), which the host does not offer',
    };
  }
  if (!has('SMTPUTF8') && hasInternationalHeader(message)) {
    return {
      kind: 'no-utf8-header',
      detail:
        'the header has an internationalized address (From, To or Reply-To), which the host does not take (SMTPUTF8); send the mail without that address',
    };
  }
  if (!has('8BITMIME') && !has('SMTPUTF8') && !isAscii(message)) {
    return {
      kind: 'no-8bitmime',
      detail:
        'a signed or encrypted part has bytes beyond ASCII, which the host does not take (8BITMIME); encode the part before it is signed (RFC 1847)',
    };
  }
  return null;
}

export function commandsOf({ from, to, message, requireTls }: Mail, { has }: Extensions): Command[] {
  const is8Bit = !isAscii(message);
  const parameters = [
    has('SMTPUTF8') && (isInternational(from + to) || hasInternationalHeader(message)) && 'SMTPUTF8',
    has('8BITMIME') && is8Bit && 'BODY=8BITMIME',
    requireTls && 'REQUIRETLS',
    has('SIZE') && `SIZE=${message.length}`,
  ].filter(Boolean);
  return [
    ['mail', [`MAIL FROM:<${from}>`, ...parameters].join(' ')],
    ['rcpt', `RCPT TO:<${to}>`],
    ['data', 'DATA'],
  ];
}

const isInternational = (address: string) => /[^\x00-\x7f]/.test(address);

/**
 * The composer makes ASCII of all other text, so this is an address (RFC 6531 section 3.4 demands the extension for it).
 * Text in another character set would be no more valid with the extension.
 */
function hasInternationalHeader(message: Buffer): boolean {
  const end = message.indexOf('\r\n\r\n');
  const head = message.subarray(0, end < 0 ? message.length : end);
  return !isAscii(head) && isUtf8(head);
}
