/** One mail in a conversation: MAIL, RCPT, DATA, the message, its reply; and RSET after a refusal. */
import { isAscii, isUtf8 } from 'node:buffer';
import type { SessionResult } from '../outcome.ts';
import type { Command, Conversation } from './conversation.ts';
import { isRefusal } from './expected-replies.ts';
import type { Extensions } from './extensions.ts';
import { sessionResultOf } from './session-result.ts';
import type { Transcript } from './transcript.ts';

export interface Mail {
  from: string;
  to: string;
  message: Buffer;
  /** The host must pass the demand for TLS on (REQUIRETLS, RFC 8689). */
  requireTls?: boolean;
}

type Refusal = Extract<SessionResult, { kind: 'refused' }>;
type Obstacle = Extract<
  SessionResult,
  { kind: 'too-big' | 'no-smtputf8' | 'no-utf8-header' | 'no-requiretls' | 'internal' }
>;

/** A reason not to begin, usually a limit that the host has announced. */
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
  return null;
}

export async function transact(
  conversation: Conversation,
  mail: Mail,
  extensions: Extensions,
  [transcript, stopped]: [Transcript, AbortSignal],
): Promise<SessionResult> {
  conversation.beginExchange(transcript, stopped);
  try {
    const refusal = await envelope(conversation, commandsOf(mail, extensions), extensions);
    if (refusal) return refusal;
    conversation.sendMessage(mail.message);
    const reply = await conversation.readReply();
    return isRefusal(reply) ? { kind: 'refused', phase: 'dot', reply } : { kind: 'accepted', reply };
  } catch (error) {
    return sessionResultOf(error);
  } finally {
    conversation.endExchange();
  }
}

/** Null if the host waits for the message. */
async function envelope(
  conversation: Conversation,
  commands: Command[],
  { has }: Extensions,
): Promise<Refusal | null> {
  const isBatch = has('PIPELINING');
  if (isBatch) conversation.send(...commands);
  let refusal: Refusal | null = null;
  for (const command of commands) {
    if (!isBatch) conversation.send(command);
    try {
      const reply = await conversation.readReply();
      const [phase] = command;
      if (isRefusal(reply)) refusal ??= { kind: 'refused', phase, reply };
      else if (refusal && phase === 'data') await endEmptyMessage(conversation, refusal);
    } catch (error) {
      // An error after a refusal is a consequence of it.
      if (!refusal) throw error;
    }
    if (refusal && !isBatch) return refusal;
  }
  return refusal;
}

/**
 * The host wants the message although it took no recipient: it gets an empty one (RFC 2920 section 3.1). If it
 * refused the sender too, its state is unknown, so the connection is destroyed.
 */
async function endEmptyMessage(conversation: Conversation, { phase }: Refusal): Promise<void> {
  if (phase === 'mail') return conversation.destroy();
  conversation.send(['dot', '.']);
  await conversation.readReply();
}

function commandsOf({ from, to, message, requireTls }: Mail, { has }: Extensions): Command[] {
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

/**
 * The host had ended the connection before this mail began. A host may send 421 at any time (RFC 5321 section 4.2.1), so
 * a 421 after MAIL may have been sent before it.
 */
export function isStale(result: SessionResult, { hasReply }: Conversation): boolean {
  if (result.kind === 'lost') return !hasReply;
  return result.kind === 'refused' && result.phase === 'mail' && result.reply.code === 421;
}

/** Whether another mail may follow. */
export async function reset(conversation: Conversation): Promise<boolean> {
  conversation.beginExchange(null, null);
  conversation.send(['quit', 'RSET']);
  try {
    return !isRefusal(await conversation.readReply()) && conversation.isAlive;
  } catch {
    return false;
  } finally {
    conversation.endExchange();
  }
}
