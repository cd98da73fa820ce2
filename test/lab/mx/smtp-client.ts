/**
 * An SMTP client that says whatever the test wants, byte for byte, and keeps what it was told. It follows no rule
 * by itself.
 *
 *   const talk = await startTalk(port);
 *   await talk.says('EHLO x\r\n', '250');
 */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { until } from '../until.ts';

export interface SmtpClient {
  /** All that came, whole replies and what may follow. */
  readonly received: string;
  readonly isOver: boolean;
  /** Writes; waits for one more whole reply, which must begin with `expected`, and answers it. Rejects if the other side hangs up. */
  says(text: string | Buffer, expected: string): Promise<string>;
  /** Begins a message: MAIL, RCPT, and DATA. Paths are in angle brackets. */
  begins(from: string, to: string): Promise<string>;
  /** Writes, and waits for nothing. */
  write(text: string | Buffer): void;
  /** Writes, and waits until the other side has taken it up or hung up. */
  drained(text: string | Buffer): Promise<void>;
  /** The next whole reply that was not asked for yet. */
  reply(expected: string): Promise<string>;
  /** Goes on over TLS. */
  secure(): Promise<void>;
  /** Waits for the other side to hang up; answers the last reply. */
  over(): Promise<string>;
  close(): void;
}

export interface SmtpClientOptions {
  /** The address that it goes to, and that it comes from, on loopback. */
  host?: string;
  from?: string;
  tls?: boolean;
  /** Whether the greeting is waited for. */
  greeted?: boolean;
}

const insecure = { rejectUnauthorized: false };

export async function connectSmtp(port: number, options: SmtpClientOptions = {}): Promise<SmtpClient> {
  const { host = '127.0.0.1', from = '127.0.0.1', tls = false, greeted = true } = options;
  let received = '';
  /** Apart, because a piece of a long text keeps all of it in memory. */
  let unread = '';
  let isOver = false;
  let socket: Socket = connectTcp({ host, port, localAddress: from, noDelay: true });
  await once(socket, 'connect');
  if (tls) socket = await handshake(socket);
  attend();

  function attend(): void {
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      received += text;
      unread += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      isOver = true;
    });
  }

  /** RFC 5321 section 4.2.1: lines with a hyphen, then one without. */
  const next = () => /^(?:\d{3}-.*\r\n)*\d{3}(?: .*)?\r\n/.exec(unread)?.[0];

  const talk: SmtpClient = {
    get received() {
      return received;
    },
    get isOver() {
      return isOver;
    },
    write: (text) => void socket.write(text),
    drained: (text) =>
      new Promise((resolve) => {
        socket.write(text, () => resolve());
      }),
    async says(text, expected) {
      socket.write(text);
      return talk.reply(expected);
    },
    async begins(from, to) {
      await talk.says(`MAIL FROM:${from}\r\n`, '250');
      await talk.says(`RCPT TO:${to}\r\n`, '250');
      return talk.says('DATA\r\n', '354');
    },
    async reply(expected) {
      const heard = () => `heard ${JSON.stringify(received.slice(-500))}`;
      await until(() => isOver || next(), { what: () => `${expected}; ${heard()}` });
      const reply = next();
      if (reply === undefined) throw new Error(`hung up instead of ${expected}; ${heard()}`);
      unread = unread.slice(reply.length);
      if (!reply.startsWith(expected)) throw new Error(`${JSON.stringify(reply)} instead of ${expected}`);
      return reply;
    },
    async secure() {
      socket.removeAllListeners();
      socket = await handshake(socket);
      attend();
    },
    async over() {
      await until(() => isOver, { what: () => `the end; heard ${JSON.stringify(received.slice(-500))}` });
      return received.trimEnd().split('\r\n').at(-1)!;
    },
    close: () => socket.destroy(),
  };
  if (greeted) await talk.reply('220');
  return talk;
}

async function handshake(socket: Socket): Promise<Socket> {
  const secure = connectTls({ socket, ...insecure });
  await once(secure, 'secureConnect');
  return secure;
}

/** The argument of AUTH PLAIN. */
export function plain(password: string, user = 'anybody'): string {
  return Buffer.from(`\0${user}\0${password}`).toString('base64');
}
