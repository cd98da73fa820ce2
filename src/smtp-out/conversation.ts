/**
 * A conversation with a host: commands go out, replies come in, each by its deadline and each held against what it
 * answers. Who leads it (opening.ts, transaction.ts) reads like the dialogue: say, hear, say, hear.
 *
 * What cannot go on (silence, a loss, rubbish, replies out of turn, the stop of this server) ends it for good: the
 * socket is destroyed, and `hear` rejects with Broken, which has the ending. It is led in stretches, the opening and
 * each mail, and rests in between, where whatever the host says or does ends it.
 *
 * A reply has one deadline, set when it is first waited for; bytes that trickle in do not move it.
 */
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Reply } from '../glossary.ts';
import type { Phase, SessionResult } from '../outcome.ts';
import { createDeadline, type Timeouts } from './deadline.ts';
import { dotStuffed } from './dot-stuffing.ts';
import { notSmtp, problemOf } from './expected-replies.ts';
import { parseReply } from './reply.ts';
import { createReplyReader } from './reply-reader.ts';
import { Broken, handshakeResult, lostSessionResult } from './session-result.ts';
import type { Transcript } from './transcript.ts';

/** What its reply is to answer, and the line. */
export type Command = readonly [Phase, string];

export interface Conversation {
  /** The TLS one, once there is TLS. */
  readonly socket: Socket;
  /** Resolves when the socket is gone. */
  readonly closed: Promise<void>;
  /** It can go on, as far as we have heard. */
  readonly isAlive: boolean;
  /** Something was answered in this stretch. */
  readonly hasAnswer: boolean;
  /** The newest reply as it came. */
  readonly newest: string;
  begin(transcript: Transcript | null, stopped: AbortSignal | null): void;
  rest(): void;
  /** Called when the host, or the line, has ended the conversation while it rested. */
  onEnd(action: () => void): void;
  /** In one write. */
  say(...commands: Command[]): void;
  sayMessage(message: Buffer): void;
  hear(): Promise<Reply>;
  /** TLS from here on. */
  secure(options: ConnectionOptions): Promise<void>;
  /** After a rest. Politely, within a second; resolves when the socket is gone. */
  quit(): Promise<void>;
  destroy(): void;
}

const politenessMs = 1_000;
/** Somebody may be long in answering: the address translators on the way are kept from forgetting the connection. */
const keepAliveMs = 30_000;

/** `plain` is connected, and nobody has read from it. */
export function createConversation(plain: Socket, timeouts: Timeouts): Conversation {
  const reader = createReplyReader();
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
  /** What the replies to come answer. */
  const awaited: Phase[] = ['greeting'];
  let answered: Phase = 'greeting';
  let newest = '';
  let hasAnswer = false;
  /** STARTTLS was agreed on, and nothing was heard under its protection yet. */
  let isSecuring = false;
  /** Part of the message has not been handed to the kernel yet. */
  let isWriting = false;
  /** All of it has been, and its final dot: a loss from here on leaves the other side's answer open. */
  let afterDot = false;
  let state: 'resting' | 'talking' | 'quitting' | 'over' = 'resting';
  let result: SessionResult | null = null;
  let waiting: { resolve(reply: Reply): void; reject(error: Broken): void } | null = null;
  let socket = plain;
  let transcript: Transcript | null = null;
  let stopped: AbortSignal | null = null;
  let onEnd = () => {};
  let impatience: NodeJS.Timeout | undefined;

  const phase = () => awaited[0] ?? answered;
  const where = () => ({ phase: phase(), afterDot });

  const deadline = createDeadline(timeouts, (ms) =>
    fail('timeout', `no answer within ${ms / 1000} s, waiting for ${phase()}`),
  );

  function hear(): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (result) return reject(new Broken(result));
      waiting = { resolve, reject };
      if (!takeReply()) deadline.set(phase());
    });
  }

  /** False where none has come yet. */
  function takeReply(): boolean {
    const text = waiting && reader.next();
    if (text === null) return false;
    newest = text;
    transcript?.add('server', text);
    answered = awaited.shift() ?? answered;
    hasAnswer = true;
    isSecuring = false;
    const reply = parseReply(text);
    const isAhead = reader.ahead > awaited.length;
    const problem = problemOf(text, reply, { phase: answered, isWriting, isAhead });
    if (problem) fail('not-smtp', problem);
    else hand(reply!);
    return true;
  }

  function hand(reply: Reply): void {
    waiting!.resolve(reply);
    waiting = null;
    // RFC 5321 section 4.2.1: whoever says 421 closes. Whoever refuses a message before its end gets no command in
    // the middle of it.
    if (reply.code === 421 || isWriting) {
      result = lostSessionResult(where(), 'the host has ended the conversation');
      destroy();
    }
  }

  function onData(chunk: Buffer): void {
    if (!reader.push(chunk)) fail('not-smtp', 'the host says too much and ends no reply');
    else if (state === 'talking') takeReply();
    else if (state === 'quitting') socket.end();
    else if (reader.ahead > 0) over();
  }

  /** What was heard counts before the manner in which the line went down. */
  function lost(why: string): void {
    if (state !== 'talking') {
      over();
      return;
    }
    const rest = reader.takeRest();
    if (rest !== '') transcript?.add('server', rest);
    const reply = parseReply(rest);
    if (reply && reply.code >= 400) end({ kind: 'refused', phase: phase(), reply });
    else if (rest !== '' && !reply) fail('not-smtp', notSmtp(rest));
    else if (isSecuring) fail('lost', why);
    else end(lostSessionResult(where(), why));
  }

  function fail(kind: 'timeout' | 'not-smtp' | 'lost' | 'interrupted', detail: string): void {
    const isHandshake = isSecuring && kind !== 'interrupted';
    end(isHandshake ? handshakeResult(detail) : { kind, ...where(), detail });
  }

  function end(how: SessionResult): void {
    if (state !== 'talking') over();
    else {
      result = how;
      if ('detail' in how) transcript?.add('note', how.detail);
      waiting?.reject(new Broken(how));
      waiting = null;
      destroy();
    }
  }

  function over(): void {
    const hasRested = state === 'resting';
    destroy();
    if (hasRested) onEnd();
  }

  function destroy(): void {
    state = 'over';
    deadline.clear();
    clearTimeout(impatience);
    heed(null);
    // The TLS one, where there is one; and what it is wrapped around.
    socket.destroy();
    plain.destroy();
  }

  function onStop(): void {
    if (state === 'talking') fail('interrupted', 'this server was stopped during the conversation');
  }

  /** The signal of a mail is most often that of the mail before. */
  function heed(signal: AbortSignal | null): void {
    if (signal === stopped) return;
    stopped?.removeEventListener('abort', onStop);
    signal?.addEventListener('abort', onStop, { once: true });
    stopped = signal;
  }

  const onError = (error: Error & { reason?: string }) => lost(error.reason ?? error.message);
  const onClose = () => lost('the connection was closed');

  function listenTo(one: Socket): void {
    one.on('data', onData).on('error', onError).on('end', onClose).on('close', onClose);
  }

  plain.setNoDelay(true);
  plain.setKeepAlive(true, keepAliveMs);
  if (plain.closed) onClosed();
  else plain.once('close', () => onClosed());
  listenTo(plain);

  return {
    closed,
    get socket() {
      return socket;
    },
    get isAlive() {
      return state !== 'over' && reader.ahead === 0 && socket.writable;
    },
    get hasAnswer() {
      return hasAnswer;
    },
    get newest() {
      return newest;
    },
    begin(kept, signal) {
      transcript = kept;
      hasAnswer = false;
      afterDot = false;
      if (state === 'over' || plain.destroyed)
        result = lostSessionResult(where(), 'the connection was closed');
      else {
        state = 'talking';
        heed(signal);
        if (signal?.aborted) onStop();
      }
    },
    rest() {
      deadline.clear();
      if (state === 'talking') state = 'resting';
    },
    onEnd(action) {
      onEnd = action;
    },
    say(...commands) {
      for (const [answer, text] of commands) {
        transcript?.add('client', text);
        awaited.push(answer);
      }
      if (state === 'talking') socket.write(commands.map(([, text]) => `${text}\r\n`).join(''));
    },
    sayMessage(message) {
      const [bytes, dot] = dotStuffed(message);
      awaited.push('dot');
      isWriting = true;
      socket.cork();
      socket.write(bytes);
      socket.write(dot, (error) => {
        if (error) return;
        isWriting = false;
        afterDot = true;
        transcript?.add('client', `<message, ${bytes.length + dot.length} bytes with its final dot>`);
        deadline.extend();
      });
      socket.uncork();
    },
    hear,
    secure(options) {
      // RFC 3207 section 4.2: what was said in clear counts no more.
      const discarded = reader.clear();
      const what = `the host said ${discarded} bytes in clear after agreeing to TLS; thrown away`;
      if (discarded > 0) transcript?.add('note', what);
      plain.off('data', onData).off('end', onClose).off('close', onClose);
      isSecuring = true;
      return new Promise((resolve, reject) => {
        waiting = { resolve: () => {}, reject };
        deadline.set('tls');
        socket = connectTls({ ...options, socket: plain }, () => {
          waiting = null;
          resolve();
        });
        listenTo(socket);
      });
    },
    quit() {
      if (state === 'over' || !socket.writable) destroy();
      else {
        state = 'quitting';
        impatience = setTimeout(destroy, politenessMs).unref();
        socket.write('QUIT\r\n');
      }
      return closed;
    },
    destroy,
  };
}
