/**
 * One SMTP session over a connected socket. `openSession` does the greeting, EHLO or HELO, and STARTTLS, and checks the
 * connection's protection against the demand; no mail goes over a connection that does not meet it. The session then
 * carries mails, one transaction after the other. It reports each result; outcome.ts classifies them.
 *
 * nodemailer's client is not used. When a connection is lost, its error does not say whether the whole message was sent,
 * so it would be unknown whether a retry may deliver it twice. Their cost is similar.
 */
import type { Socket } from 'node:net';
import type { TlsFailureType, TlsTrial, TlsUsed } from '../glossary.ts';
import type { SessionResult } from '../outcome.ts';
import { Conversation } from './conversation.ts';
import type { Timeouts } from './deadline.ts';
import type { Extensions } from './extensions.ts';
import { type Handshake, handshakeOf } from './handshake.ts';
import { type Greeting, open } from './opening.ts';
import { sessionResultOf } from './session-result.ts';
import { type Demand, type Protection, protectionOf } from './tls-demand.ts';
import { isStale, type Mail, obstacle, reset, transact } from './transaction.ts';
import type { Transcript } from './transcript.ts';

export interface Opening extends Greeting {
  socket: Socket;
  address: string;
  /** The recipient's domain: DANE also accepts a certificate for this name. */
  domain: string;
  /** Our own address (null: the system chose it) and its IP pool. */
  source: string | null;
  sourcePool: string;
  demand: Demand;
  timeouts: Timeouts;
  transcript: Transcript;
  stopped: AbortSignal;
}

/** `closed` resolves when the socket is gone. `trial`: null if TLS was not tried. */
export type Opened = { trial: TlsTrial | null } & (
  | { session: Session; protection: Protection }
  | { result: SessionResult; tls: TlsUsed | null; closed: Promise<void> }
);

export interface Session {
  readonly host: string;
  readonly address: string;
  /** Our own address (null: the system chose it) and its IP pool. */
  readonly source: string | null;
  readonly sourcePool: string;
  /** Number of transactions that were started. */
  readonly mails: number;
  /** Nothing is known that prevents another mail. */
  readonly isAlive: boolean;
  readonly closed: Promise<void>;
  /** Calls `listener` when the host or the network ends the session while it is idle. */
  onEnd(listener: () => void): void;
  protection(demand: Demand, domain: string): Protection;
  /** `stale`: the host had ended the idle session before this mail, so the mail may be sent over a new one. */
  send(
    mail: Mail,
    transcript: Transcript,
    stopped: AbortSignal,
  ): Promise<{ result: SessionResult; stale: boolean }>;
  /** Prepares for another mail, with RSET if the last one was refused; false if that is not possible, or one too many. */
  tidy(): Promise<boolean>;
  /** Sends QUIT and waits up to a second. Resolves when the socket is gone. */
  quit(): Promise<void>;
}

export async function openSession(opening: Opening): Promise<Opened> {
  const { demand, transcript, tls } = opening;
  const conversation = new Conversation(opening.socket, opening.timeouts);
  conversation.beginExchange(transcript, opening.stopped);
  const opened = await open(conversation, opening).catch(sessionResultOf);
  conversation.endExchange();
  const { closed } = conversation;
  if ('kind' in opened) {
    conversation.quit();
    const trial = opened.kind === 'tls-failed' ? failedTrial('validation-failure', opened.detail) : null;
    return { result: opened, tls: null, closed, trial };
  }
  const handshake = handshakeOf(conversation.socket, tls ?? 'modern');
  const protection = protectionOf(handshake, demand, opening);
  transcript.add('note', protection.note + opened.clearBecause);
  const trial = tls && trialOf(protection, opened.clearBecause);
  if (protection.unmet === null) {
    return { session: createSession(conversation, opened.extensions, handshake, opening), protection, trial };
  }
  const detail = protection.unmet + opened.clearBecause;
  transcript.add('note', detail);
  conversation.quit();
  return { result: { kind: 'tls-required', detail }, tls: protection.tls, closed, trial };
}

function failedTrial(failure: TlsFailureType, reason: string): TlsTrial {
  return { failure, fault: null, reason };
}

function trialOf({ tls, fault, note }: Protection, clearBecause: string): TlsTrial {
  // As in ": it does not offer STARTTLS".
  if (!tls) return failedTrial('starttls-not-supported', clearBecause.slice(2));
  return { failure: null, fault, reason: fault && note };
}

function createSession(
  conversation: Conversation,
  extensions: Extensions,
  handshake: Handshake | null,
  opening: Opening,
): Session {
  const { host, address, source, sourcePool } = opening;
  let mails = 0;
  let last: SessionResult | null = null;

  return {
    host,
    address,
    source,
    sourcePool,
    closed: conversation.closed,
    get mails() {
      return mails;
    },
    get isAlive() {
      return conversation.isAlive;
    },
    onEnd: (listener) => conversation.onEnd(listener),
    protection: (demand, domain) => protectionOf(handshake, demand, { host, domain }),
    async send(mail, transcript, stopped) {
      const isReused = mails++ > 0;
      const impossible = obstacle(mail, extensions);
      if (impossible) transcript.add('note', impossible.detail);
      last = impossible ?? (await transact(conversation, mail, extensions, [transcript, stopped]));
      return { result: last, stale: isReused && isStale(last, conversation) };
    },
    async tidy() {
      if (!conversation.isAlive || last === null || mails >= extensions.mailMax) return false;
      return last.kind === 'refused' ? reset(conversation) : true;
    },
    quit: () => conversation.quit(),
  };
}
