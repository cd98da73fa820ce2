/**
 * A short SMTP session with a mail server: greeting, EHLO, QUIT. The reply to EHLO often contains, in brackets, the address
 * that the server sees us at; behind a NAT we cannot learn it otherwise. Never rejects.
 */
import { isIP, type Socket } from 'node:net';
import { type Call, dial, failureText } from '#mail/deliver/route/tcp-dial.ts';

export interface SmtpGreeting {
  /** The first line; null if there was none. */
  greeting: string | null;
  /** The address at which the server sees us, if its reply contains one. */
  seesUs: string | null;
  /** Our address of the connection; null if there was none. */
  localAddress: string | null;
  /** A predicate for the server, such as "refused the connection"; null if it greeted. */
  error: string | null;
}

/** More than any greeting and reply to EHLO together. */
const maxBytes = 8 * 1024;

export async function readGreeting(call: Call, ehloName: string, timeoutMs: number): Promise<SmtpGreeting> {
  let socket: Socket;
  try {
    socket = await dial(call, new AbortController().signal);
  } catch (error) {
    return { greeting: null, seesUs: null, localAddress: null, error: failureText(error as Error) };
  }
  const localAddress = socket.localAddress ?? null;
  const received = await readReplies(socket, ehloName, timeoutMs);
  const [greeting = null] = received.split(/\r?\n/, 1).filter((line) => line !== '');
  const error =
    greeting === null ? `took the connection and did not greet within ${timeoutMs / 1000} s` : null;
  return { greeting, seesUs: addressIn(received), localAddress, error };
}

/** Everything received until the reply to EHLO is complete, the server hangs up, or the time is over. */
function readReplies(socket: Socket, ehloName: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    let greeted = false;
    const end = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(received);
    };
    const timer = setTimeout(end, timeoutMs);
    socket.on('error', end);
    socket.on('close', end);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const replies = received.match(/^\d{3}(?: .*)?\r?\n/gm) ?? [];
      // A server that refuses in its greeting gets no EHLO (RFC 5321 section 3.1).
      const isOver = replies.length >= 2 || (replies.length === 1 && !replies[0]!.startsWith('2'));
      if (isOver) socket.end('QUIT\r\n', end);
      else if (received.length > maxBytes) end();
      else if (replies.length === 1 && !greeted) {
        greeted = true;
        socket.write(`EHLO ${ehloName}\r\n`);
      }
    });
  });
}

/** An address literal (RFC 5321 section 4.1.3); those of IPv6 have a tag. */
function addressIn(received: string): string | null {
  const bracketed = [...received.matchAll(/\[(?:IPv6:)?([0-9a-f.:]+)\]/gi)].map(([, text]) => text!);
  return bracketed.find((text) => isIP(text) !== 0) ?? null;
}
