/**
 * One SMTP conversation over a socket that is already connected: greeting, EHLO, STARTTLS where offered, one mail
 * transaction, QUIT. Reports how it ended and decides nothing; outcome.ts judges.
 *
 * The protocol is nodemailer's connection (pipelining, dot-stuffing, EHLO then HELO). This file gives every reply a
 * deadline of its own, keeps the transcript, and knows at each moment which command the next reply answers; so that
 * whatever goes wrong, it can say where, and whether the final dot was out (then the message may have been taken).
 */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { TlsUsed } from '../nouns.ts';
import type { Ending, Phase } from '../outcome.ts';
import { parseReply } from './reply.ts';
import type { Transcript } from './transcript.ts';
import { createWatch, type Watch } from './watch.ts';

interface Envelope {
  from: string;
  to: string;
}

/** Milliseconds to wait for each reply; `tls` is for the handshake. */
export interface Timeouts {
  greeting: number;
  ehlo: number;
  tls: number;
  mail: number;
  rcpt: number;
  data: number;
  dot: number;
}

export interface Conversation {
  socket: Socket;
  /** The MX's name, for SNI and for checking its certificate. */
  host: string;
  /** Our own name, said in EHLO. */
  name: string;
  envelope: Envelope;
  message: Buffer;
  /** False: stay in clear even where STARTTLS is offered. */
  startTls: boolean;
  timeouts: Timeouts;
  transcript: Transcript;
  stopped: AbortSignal;
}

export interface Report {
  ending: Ending;
  tls: TlsUsed | null;
}

/** The largest reply taken from a host; past it, what it speaks is not SMTP. */
const largestReply = 64 * 1024;

const politenessMs = 5_000;

export function converse(conversation: Conversation): Promise<Report> {
  const { transcript, stopped } = conversation;
  const watch = createWatch(conversation, (detail) => fail('timeout', detail));
  const connection = new SMTPConnection({
    connection: conversation.socket,
    host: conversation.host,
    name: conversation.name,
    ignoreTLS: !conversation.startTls,
    opportunisticTLS: true,
    // Opportunistic TLS takes any certificate (RFC 7435); whether it was a good one is reported, not demanded.
    tls: { rejectUnauthorized: false },
    maxResponseSize: largestReply,
    // Ours come first: every deadline below is shorter than what the library is given here.
    greetingTimeout: 2 ** 30,
    connectionTimeout: 2 ** 30,
    socketTimeout: 2 ** 30,
    transactionLog: true,
    logger: watch.logger,
  });
  let fail: (kind: 'timeout' | 'interrupted', detail: string) => void = () => {};

  return new Promise<Report>((resolve) => {
    let done = false;
    const finish = (ending: Ending) => {
      if (done) return;
      done = true;
      watch.end();
      stopped.removeEventListener('abort', interrupt);
      const tls = tlsOf(connection);
      resolve({ ending, tls });
      if (ending.kind === 'accepted' || ending.kind === 'refused') quit(connection);
      else connection.close();
    };
    fail = (kind, detail) => {
      transcript.add('note', detail);
      if (kind === 'timeout' && watch.inHandshake()) return finish({ kind: 'tls-failed', detail });
      finish({ kind, phase: watch.phase(), detail, afterDot: watch.afterDot() });
    };
    const interrupt = () => fail('interrupted', 'this server was stopped during the conversation');
    stopped.addEventListener('abort', interrupt, { once: true });

    connection.on('error', (error) => finish(endingOf(error, watch)));
    connection.on('end', () => finish(lostEnding(watch, 'the connection was closed')));
    connection.connect((error) => {
      if (error) return finish(endingOf(error, watch));
      const impossible = obstacle(connection, conversation);
      if (impossible) return finish(impossible);
      const envelope = {
        from: conversation.envelope.from,
        to: [conversation.envelope.to],
        size: conversation.message.length,
        use8BitMime: has8Bit(conversation.message),
      };
      connection.send(envelope, conversation.message, (problem, info) => {
        if (problem) return finish(endingOf(problem, watch));
        const reply = parseReply(info!.response);
        finish(reply ? { kind: 'accepted', reply } : notSmtp(info!.response, watch));
      });
    });
  });
}

/** Politely, but nobody waits for it: the outcome is known. */
function quit(connection: SMTPConnection): void {
  const impatient = setTimeout(() => connection.close(), politenessMs).unref();
  connection.once('end', () => clearTimeout(impatient));
  connection.quit();
}

/** What the host announced makes it pointless to begin. */
function obstacle(connection: SMTPConnection, { envelope, message }: Conversation): Ending | null {
  const { _maxAllowedSize: limit, _supportedExtensions: extensions } = connection as unknown as {
    _maxAllowedSize: number;
    _supportedExtensions: string[];
  };
  if (limit > 0 && message.length > limit) {
    return { kind: 'too-big', detail: `the message has ${message.length} bytes, the host takes ${limit}` };
  }
  if (/[^\x00-\x7f]/.test(envelope.to) && !extensions.includes('SMTPUTF8')) {
    return { kind: 'no-smtputf8', detail: 'the host does not take internationalized addresses (SMTPUTF8)' };
  }
  return null;
}

function has8Bit(message: Buffer): boolean {
  return message.some((byte) => byte > 0x7f);
}

function tlsOf(connection: SMTPConnection): TlsUsed | null {
  const socket = connection._socket;
  if (!(socket instanceof TLSSocket) || !socket.getProtocol()) return null;
  return {
    protocol: socket.getProtocol()!,
    cipher: socket.getCipher()?.standardName ?? 'unknown',
    verified: socket.authorized,
    policy: 'opportunistic',
  };
}

type LibraryError = Error & { code?: string; command?: string; response?: string };

/** The library's error as a fact. A reply that is a refusal counts before the manner in which the line went down. */
function endingOf(error: LibraryError, watch: Watch): Ending {
  const reply = error.response ? parseReply(error.response) : null;
  if (reply && reply.code >= 400) return { kind: 'refused', phase: refusedAt(error, watch), reply };
  if (watch.inHandshake()) return { kind: 'tls-failed', detail: `TLS handshake failed: ${error.message}` };
  if (error.response || error.code === 'EPROTOCOL') return notSmtp(error.response ?? error.message, watch);
  return lostEnding(watch, error.message);
}

function notSmtp(said: string, watch: Watch): Ending {
  const detail = `not an SMTP reply: ${JSON.stringify(said.slice(0, 200))}`;
  return { kind: 'not-smtp', phase: watch.phase(), afterDot: watch.afterDot(), detail };
}

/** With pipelining the error comes up at the last reply of the batch, and names the command that it is about. */
function refusedAt(error: LibraryError, watch: Watch): Phase {
  if (error.command === 'MAIL FROM') return 'mail';
  if (error.command === 'RCPT TO') return 'rcpt';
  if (error.command === 'DATA') return error.code === 'EMESSAGE' ? 'dot' : 'data';
  return watch.answered();
}

function lostEnding(watch: Watch, detail: string): Ending {
  const where = watch.afterDot() ? 'after the message, before its reply' : `waiting for ${watch.phase()}`;
  return {
    kind: 'lost',
    phase: watch.phase(),
    afterDot: watch.afterDot(),
    detail: `connection lost ${where}: ${detail}`,
  };
}
