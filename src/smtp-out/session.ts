/**
 * One SMTP session over a socket that is already connected: `openSession` takes it through greeting, EHLO (or HELO),
 * STARTTLS and the check of what it gives against what is demanded; then it carries mails, one transaction after the
 * other. Reports how each ended and decides nothing; outcome.ts classifies.
 *
 * Nothing of a mail goes out over a connection that does not meet the demand.
 */
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsUsed } from '../glossary.ts';
import type { SessionResult } from '../outcome.ts';
import { Conversation } from './conversation.ts';
import type { Timeouts } from './deadline.ts';
import type { Extensions } from './extensions.ts';
import { open } from './opening.ts';
import { sessionResultOf } from './session-result.ts';
import { type Demand, type Protection, protectionOf } from './tls-demand.ts';
import { isStale, type Mail, obstacle, reset, transact } from './transaction.ts';
import type { Transcript } from './transcript.ts';

export interface Opening {
  socket: Socket;
  /** The MX's name, for SNI and for checking its certificate, and the address it was reached at. */
  host: string;
  address: string;
  /** The domain whose mail the host takes: DANE lets its certificate bear that name. */
  domain: string;
  /** Our own end: its address (null: the system's choice) and the pool that it is of; the name is said in EHLO. */
  source: string | null;
  sourcePool: string;
  name: string;
  demand: Demand;
  /** False: stay in clear even where STARTTLS is offered. */
  startTls: boolean;
  timeouts: Timeouts;
  transcript: Transcript;
  stopped: AbortSignal;
}

/** `closed` resolves when the socket is gone. */
export type Opened =
  | { session: Session; protection: Protection }
  | { result: SessionResult; tls: TlsUsed | null; closed: Promise<void> };

export interface Session {
  readonly host: string;
  readonly address: string;
  /** Our own address, null where the system chose it, and the pool that it is of. */
  readonly source: string | null;
  readonly sourcePool: string;
  /** Transactions begun. */
  readonly mails: number;
  /** It can carry another mail, as far as we have heard. */
  readonly isAlive: boolean;
  readonly closed: Promise<void>;
  /** Calls back when the host, or the line, ended the session. */
  onEnd(listener: () => void): void;
  protection(demand: Demand, domain: string): Protection;
  /** `stale`: the host had hung up before it heard of this mail, which was not to be known. */
  send(
    mail: Mail,
    transcript: Transcript,
    stopped: AbortSignal,
  ): Promise<{ result: SessionResult; stale: boolean }>;
  /** Makes ready for another mail (RSET where the last one was refused); false where that is not possible. */
  tidy(): Promise<boolean>;
  /** Politely, within a second; resolves when the socket is gone. */
  quit(): Promise<void>;
}

/** Made once: it holds the authorities' certificates. */
let secureContext: SecureContext | undefined;

export async function openSession(opening: Opening): Promise<Opened> {
  const { demand, transcript } = opening;
  const conversation = new Conversation(opening.socket, opening.timeouts);
  conversation.beginExchange(transcript, opening.stopped);
  secureContext ??= createSecureContext();
  const opened = await open(conversation, { ...opening, secureContext }).catch(sessionResultOf);
  conversation.endExchange();
  const { closed } = conversation;
  if ('kind' in opened) {
    conversation.quit();
    return { result: opened, tls: null, closed };
  }
  const protection = protectionOf(conversation.socket, demand, opening);
  transcript.add('note', protection.note + opened.clearBecause);
  if (protection.unmet === null) {
    return { session: createSession(conversation, opened.extensions, opening), protection };
  }
  const detail = protection.unmet + opened.clearBecause;
  transcript.add('note', detail);
  conversation.quit();
  return { result: { kind: 'tls-required', detail }, tls: protection.tls, closed };
}

function createSession(conversation: Conversation, extensions: Extensions, opening: Opening): Session {
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
    protection: (demand, domain) => protectionOf(conversation.socket, demand, { host, domain }),
    async send(mail, transcript, stopped) {
      const isReused = mails++ > 0;
      const impossible = obstacle(mail, extensions);
      if (impossible) transcript.add('note', impossible.detail);
      last = impossible ?? (await transact(conversation, mail, extensions, [transcript, stopped]));
      return { result: last, stale: isReused && isStale(last, conversation) };
    },
    async tidy() {
      if (!conversation.isAlive || last === null) return false;
      return last.kind === 'refused' ? reset(conversation) : true;
    },
    quit: () => conversation.quit(),
  };
}
