/**
 * How far the dialogue with a host has come: the commands whose replies are awaited, how much of the message was sent, and whether
 * TLS is being set up. From this alone it says whether a reply is valid, and which result it is if the dialogue ends now. It
 * neither reads nor writes; conversation.ts tells it what was sent and what came.
 */
import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Phase, Reply } from '#platform/values/glossary.ts';
import { parseReply } from '#platform/values/reply.ts';
import { isRefusal, notSmtp, problemOf } from './expected-replies.ts';
import { lostSessionResult, type Position, type SecuringStep, tlsFailed } from './session-result.ts';

type TlsError = Error & { reason?: string; code?: string };

const reasonOf = ({ reason, message }: TlsError) => reason ?? message;
/** The bytes have no version of TLS in them. */
const isNotTls = ({ code }: TlsError) => code === 'ERR_SSL_WRONG_VERSION_NUMBER';

/** How we end a dialogue. */
type Failure = 'timeout' | 'not-smtp' | 'interrupted';

export class SessionProgress {
  /** The phases whose replies have not come yet. */
  readonly #awaited: Phase[] = ['greeting'];
  #answered: Phase = 'greeting';
  #hasReply = false;
  /** From STARTTLS until the first reply that came over TLS, or the refusal of STARTTLS: a failure here is one of TLS. */
  #securing: SecuringStep | null = null;
  #message: 'none' | 'being sent' | 'sent' = 'none';

  /** The phase whose reply is awaited; if there is none, the last that was answered. */
  get phase(): Phase {
    return this.#awaited[0] ?? this.#answered;
  }

  /** A reply has come in this exchange. */
  get hasReply(): boolean {
    return this.#hasReply;
  }

  /** Part of the message has not been handed to the kernel yet. */
  get isWriting(): boolean {
    return this.#message === 'being sent';
  }

  beginExchange(): void {
    this.#hasReply = false;
    this.#message = 'none';
  }

  sendCommand(phase: Phase): void {
    this.#awaited.push(phase);
    if (phase === 'starttls') this.#securing = 'starttls';
  }

  beginMessage(): void {
    this.#awaited.push('dot');
    this.#message = 'being sent';
  }

  /** With its final dot: from now on, the host may have accepted it even if the connection is lost. */
  endMessage(): void {
    this.#message = 'sent';
  }

  beginHandshake(): void {
    this.#securing = 'handshake';
  }

  endHandshake(): void {
    this.#securing = 'ehlo';
  }

  /** Returns what is wrong with a reply, null if it is valid here. `unread`: how many replies have come after it. */
  takeReply(text: string, reply: Reply | null, unread: number): string | null {
    this.#answered = this.#awaited.shift() ?? this.#answered;
    this.#hasReply = true;
    const problem = problemOf(text, reply, {
      phase: this.#answered,
      isWriting: this.isWriting,
      hasExtra: unread > this.#awaited.length,
    });
    const isSettled = problem === null && (this.#securing === 'starttls' || !isRefusal(reply!));
    if (isSettled) this.#securing = null;
    return problem;
  }

  /** The result if the connection is lost now. `rest`: an unfinished reply; if it is a refusal, it decides. */
  lost(why: string, rest: string): SessionResult {
    const reply = parseReply(rest);
    if (rest !== '' && reply === null) return this.failed('not-smtp', notSmtp(rest));
    const refusal = reply !== null && isRefusal(reply) ? reply : null;
    if (this.#securing) return tlsFailed(this.#securing, 'lost', refusal ? `the host said ${rest}` : why);
    return refusal ? { kind: 'refused', phase: this.phase, reply: refusal } : this.ended(why);
  }

  /** The result if the connection is lost, or of no more use, without a word of the host. */
  ended(why: string): SessionResult {
    return lostSessionResult(this.#position, why);
  }

  failed(failure: Failure, detail: string): SessionResult {
    if (!this.#securing || failure === 'interrupted') return { kind: failure, ...this.#position, detail };
    return tlsFailed(this.#securing, failure === 'not-smtp' ? 'nonsense' : 'lost', detail);
  }

  /** `rest`: as for `lost`. */
  socketFailed(error: TlsError, rest: string): SessionResult {
    const isOfTls = this.#securing === 'handshake' && error.code?.startsWith('ERR_SSL_');
    if (!isOfTls) return this.lost(reasonOf(error), rest);
    return tlsFailed('handshake', isNotTls(error) ? 'nonsense' : 'tls', reasonOf(error));
  }

  get #position(): Position {
    return { phase: this.phase, afterDot: this.#message === 'sent' };
  }
}
