/**
 * One SMTP session over a connected socket, in the order of its commands. `openSession` does the greeting, EHLO or HELO, and
 * STARTTLS, and checks the connection's protection against the demand; no mail goes over a connection that does not meet it.
 * The session then carries mails, one transaction (MAIL, RCPT, DATA, the message, its reply) after the other, with RSET after
 * a refusal, and ends with QUIT. It reports each result; outcome.ts classifies them. conversation.ts reads and writes.
 *
 * nodemailer's client is not used. When a connection is lost, its error does not say whether the whole message was sent,
 * so it would be unknown whether a retry may deliver it twice. Their cost is similar.
 */
import { isIP, type Socket } from 'node:net';
import { replyText, type SessionResult } from '#mail/deliver/outcome.ts';
import type { Phase, Reply, TlsFailureType, TlsTrial, TlsUsed } from '#platform/values/glossary.ts';
import { type Command, Conversation } from './conversation.ts';
import type { SessionTimeouts } from './deadline.ts';
import { isRefusal } from './expected-replies.ts';
import { type Extensions, extensionsOf, noExtensions } from './extensions.ts';
import { type Handshake, handshakeOf, secureContextOf, type TlsOffer } from './handshake.ts';
import { commandsOf, type Mail, obstacle } from './mail-needs.ts';
import { sessionResultOf, tlsFailed } from './session-result.ts';
import { type Demand, type Protection, protectionOf } from './tls-demand.ts';
import type { Transcript } from './transcript.ts';

interface Opening {
  socket: Socket;
  /** The MX's name, for SNI and for the check of its certificate. */
  host: string;
  address: string;
  /** Our own name in EHLO. */
  name: string;
  /** Null: no TLS, even if the host offers STARTTLS. */
  tls: TlsOffer | null;
  /** The recipient's domain: DANE also accepts a certificate for this name. */
  domain: string;
  /** Our own address (null: the system chose it) and its IP pool. */
  source: string | null;
  sourcePool: string;
  demand: Demand;
  timeouts: SessionTimeouts;
  transcript: Transcript;
  stopped: AbortSignal;
}

/** `closed` resolves when the socket is gone. `trial`: null if TLS was not tried. */
export type OpenedSession = { trial: TlsTrial | null } & (
  | { session: SmtpSession; protection: Protection }
  | { result: SessionResult; tls: TlsUsed | null; closed: Promise<void> }
);

export interface SmtpSession {
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

type Refusal = Extract<SessionResult, { kind: 'refused' }>;

export async function openSession(opening: Opening): Promise<OpenedSession> {
  const { demand, transcript, tls } = opening;
  const conversation = new Conversation(opening.socket, opening.timeouts);
  conversation.beginExchange(transcript, opening.stopped);
  const opened = await greet(conversation, opening).catch(sessionResultOf);
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
  return { failure, certificateFailure: null, reason };
}

function trialOf({ tls, certificateFailure, note }: Protection, clearBecause: string): TlsTrial {
  // As in ": it does not offer STARTTLS".
  if (!tls) return failedTrial('starttls-not-supported', clearBecause.slice(2));
  return { failure: null, certificateFailure, reason: certificateFailure && note };
}

/** `clearBecause`: why there is no TLS although it was wanted; else empty. */
type Greeted =
  | { extensions: Extensions; clearBecause: string }
  | Refusal
  | Extract<SessionResult, { kind: 'tls-failed' }>;

async function greet(conversation: Conversation, { host, name, tls }: Opening): Promise<Greeted> {
  const reply = await conversation.readReply();
  if (isRefusal(reply)) return refused('greeting', reply);
  const extensions = await hello(conversation, name);
  if ('kind' in extensions || !tls) return greeted(extensions);
  if (!extensions.has('STARTTLS')) return greeted(extensions, ': it does not offer STARTTLS');
  conversation.send(['starttls', 'STARTTLS']);
  const answer = await conversation.readReply();
  // RFC 5321 section 4.2.1: it closes, so what it may take in clear is not known.
  if (answer.code === 421) return tlsFailed('starttls', 'lost', `the host said ${replyText(answer)}`);
  if (isRefusal(answer)) return greeted(extensions, ': it refuses STARTTLS');
  await secure(conversation, host, tls);
  // RFC 3207 section 4.2: the extensions offered before TLS are discarded.
  const secured = await hello(conversation, name);
  if (!('kind' in secured)) return greeted(secured);
  return tlsFailed('ehlo', 'lost', `the host said ${replyText(secured.reply)}`);
}

function greeted(extensions: Extensions | Refusal, clearBecause = ''): Greeted {
  return 'kind' in extensions ? extensions : { extensions, clearBecause };
}

const refused = (phase: Phase, reply: Reply) => ({ kind: 'refused', phase, reply }) as const;

async function hello(conversation: Conversation, name: string) {
  conversation.send(['ehlo', `EHLO ${name}`]);
  const reply = await conversation.readReply();
  if (!isRefusal(reply)) return extensionsOf(conversation.lastReply);
  if (reply.code === 421) return refused('ehlo', reply);
  conversation.send(['ehlo', `HELO ${name}`]);
  const second = await conversation.readReply();
  return isRefusal(second) ? refused('ehlo', second) : noExtensions;
}

/** Accepts any certificate; tls-demand.ts checks it afterwards. */
function secure(conversation: Conversation, host: string, tls: TlsOffer): Promise<void> {
  // RFC 6066 section 3: no addresses in SNI. Some old hosts break off at a name that they do not know.
  const servername = isIP(host) || tls === 'legacy' ? '' : host;
  const secureContext = secureContextOf(tls);
  return conversation.startTls({ host, servername, rejectUnauthorized: false, secureContext });
}

function createSession(
  conversation: Conversation,
  extensions: Extensions,
  handshake: Handshake | null,
  opening: Opening,
): SmtpSession {
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

async function transact(
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

/**
 * The host had ended the connection before this mail began. A host may send 421 at any time (RFC 5321 section 4.2.1), so
 * a 421 after MAIL may have been sent before it.
 */
function isStale(result: SessionResult, { hasReply }: Conversation): boolean {
  if (result.kind === 'lost') return !hasReply;
  return result.kind === 'refused' && result.phase === 'mail' && result.reply.code === 421;
}

/** Whether another mail may follow. */
async function reset(conversation: Conversation): Promise<boolean> {
  conversation.beginExchange(null, null);
  conversation.send(['rset', 'RSET']);
  try {
    return !isRefusal(await conversation.readReply()) && conversation.isAlive;
  } catch {
    return false;
  } finally {
    conversation.endExchange();
  }
}
