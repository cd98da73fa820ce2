/** One mail over a line that is open: MAIL, RCPT, DATA, the message, its reply; and RSET where it was refused. */
import { isAscii } from 'node:buffer';
import type { Ending } from '../outcome.ts';
import type { Connection } from './connection.ts';
import { attend, destroy, type Line } from './line.ts';
import { parseReply } from './reply.ts';
import type { Transcript } from './transcript.ts';
import type { Watch } from './watch.ts';

export interface Mail {
  from: string;
  to: string;
  message: Buffer;
}

type Obstacle = Extract<Ending, { kind: 'too-big' | 'no-smtputf8' }>;

/** What the host announced makes it pointless to begin. */
export function obstacle(connection: Connection, { to, message }: Mail, sizeLimit: number): Obstacle | null {
  if (sizeLimit > 0 && message.length > sizeLimit) {
    return {
      kind: 'too-big',
      detail: `the message has ${message.length} bytes, the host takes ${sizeLimit}`,
    };
  }
  if (!isAscii(Buffer.from(to)) && !connection.offers('SMTPUTF8')) {
    return { kind: 'no-smtputf8', detail: 'the host does not take internationalized addresses (SMTPUTF8)' };
  }
  return null;
}

export function transact(
  line: Line,
  { from, to, message }: Mail,
  transcript: Transcript,
  stopped: AbortSignal,
): Promise<Ending> {
  const { connection, watch } = line;
  return new Promise((resolve) => {
    const { done, fail } = attend(line, transcript, stopped, (ending) => {
      resolve(ending);
      // Whoever refuses a message before its end gets no command in the middle of it.
      const isMidway = 'phase' in ending && ending.phase === 'dot' && !watch.afterDot();
      if (ending.kind !== 'refused' || isMidway) destroy(line);
    });
    const is8Bit = !isAscii(message);
    connection.isInternational = is8Bit && hasInternationalHeader(message);
    const envelope = { from, to: [to], size: message.length, use8BitMime: is8Bit };
    connection.send(envelope, message, (error, info) => {
      if (error) return fail(error);
      const reply = parseReply(info!.response);
      // The watch has seen this reply and found it good.
      done({ kind: 'accepted', reply: reply! });
      resolve({ kind: 'accepted', reply: reply! });
    });
  });
}

/** Our composer encodes words; what is left beyond ASCII in a header is an address. */
function hasInternationalHeader(message: Buffer): boolean {
  const end = message.indexOf('\r\n\r\n');
  return !isAscii(message.subarray(0, end < 0 ? message.length : end));
}

/** RFC 5321 section 4.2.1: 421 comes at any moment, and what it answers is then an accident. */
export function isStale(ending: Ending, watch: Watch): boolean {
  if (ending.kind === 'lost') return !watch.hasAnswer();
  return ending.kind === 'refused' && ending.phase === 'mail' && ending.reply.code === 421;
}

export function reset({ connection, watch }: Line): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isClean: boolean) => {
      watch.end();
      connection.removeListener('end', lost);
      resolve(isClean);
    };
    const lost = () => settle(false);
    connection.once('end', lost);
    watch.begin({ transcript: null, onTrouble: () => settle(false) });
    connection.reset((error) => settle(!error && connection.ahead === 0));
  });
}
