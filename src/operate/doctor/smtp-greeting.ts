/**
 * A short talk with a mail server: its greeting, our EHLO, good-bye. What a server says to EHLO often holds the
 * address that it sees us at, in brackets, which behind a NAT nobody else can tell us. Never rejects.
 */
import { isIP, type Socket } from 'node:net';
import { type Call, dial, failureText } from '../../route/tcp-dial.ts';

export interface GreetingTimes {
  /** The first line said; null: none, or no connection. */
  greeting: string | null;
  /** Where it sees us. */
  seesUs: string | null;
  /** Our end of the connection; null: there was none. */
  localAddress: string | null;
  /** To be read after the address; null: it greeted. */
  trouble: string | null;
}

/** More than any greeting, and the answer to EHLO, has. */
const maxBytes = 8 * 1024;

export async function talkTo(call: Call, ehloName: string, talkMs: number): Promise<GreetingTimes> {
  let socket: Socket;
  try {
    socket = await dial(call, new AbortController().signal);
  } catch (error) {
    return { greeting: null, seesUs: null, localAddress: null, trouble: failureText(error as Error) };
  }
  const localAddress = socket.localAddress ?? null;
  const said = await listen(socket, ehloName, talkMs);
  const [greeting = null] = said.split(/\r?\n/, 1).filter((line) => line !== '');
  const trouble =
    greeting === null ? `took the connection and did not greet within ${talkMs / 1000} s` : null;
  return { greeting, seesUs: addressIn(said), localAddress, trouble };
}

/** Everything said until the answer to EHLO is whole, the server hangs up, or time is over. */
function listen(socket: Socket, ehloName: string, talkMs: number): Promise<string> {
  return new Promise((resolve) => {
    let said = '';
    let greeted = false;
    const end = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(said);
    };
    const timer = setTimeout(end, talkMs);
    socket.on('error', end);
    socket.on('close', end);
    socket.on('data', (chunk) => {
      said += chunk.toString('latin1');
      const replies = said.match(/^\d{3}(?: .*)?\r?\n/gm) ?? [];
      // Of a server that greets with a refusal no more is asked (RFC 5321 section 3.1).
      const isOver = replies.length >= 2 || (replies.length === 1 && !replies[0]!.startsWith('2'));
      if (isOver) socket.end('QUIT\r\n', end);
      else if (said.length > maxBytes) end();
      else if (replies.length === 1 && !greeted) {
        greeted = true;
        socket.write(`EHLO ${ehloName}\r\n`);
      }
    });
  });
}

/** RFC 5321 section 4.1.3 writes addresses so, with a tag before those of IPv6. */
function addressIn(said: string): string | null {
  const bracketed = [...said.matchAll(/\[(?:IPv6:)?([0-9a-f.:]+)\]/gi)].map(([, text]) => text!);
  return bracketed.find((text) => isIP(text) !== 0) ?? null;
}
