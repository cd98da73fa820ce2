/**
 * Follows a session through the log of nodemailer's connection: which command the next reply answers, when that reply
 * is overdue, whether it is a reply at all and one that fits, what goes into the transcript, whether the final dot has
 * been written.
 *
 * A reply has one deadline, set when it is first waited for; bytes that trickle in do not move it. One watch is one
 * session; `begin` starts it on a mail (or on the opening), `end` has it look away.
 */
import type { Reply } from '../nouns.ts';
import type { Phase } from '../outcome.ts';
import { parseReply } from './reply.ts';
import type { Transcript } from './transcript.ts';

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

interface Refusal {
  phase: Phase;
  reply: Reply;
}

interface Watched {
  transcript: Transcript | null;
  /** The host is overdue, or what it says is not SMTP. Called at most once. */
  onTrouble(kind: 'timeout' | 'not-smtp', detail: string): void;
}

export interface Watch {
  logger: Record<'level' | 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal', Log>;
  begin(watched: Watched): void;
  /** What is being waited for. */
  phase(): Phase;
  /** What the newest reply answered. */
  answered(): Phase;
  /** The first refusal of the mail at hand; what comes after it is its consequence. */
  refusal(): Refusal | null;
  /** Something was answered since `begin`. */
  hasAnswer(): boolean;
  /** The whole message and its final dot have been written: a loss from here on leaves the other side's answer open. */
  afterDot(): boolean;
  /** STARTTLS was agreed on and no reply has come under its protection yet. */
  isSecuring(): boolean;
  end(): void;
}

type Log = (entry: { tnx?: string; outByteCount?: number; discarded?: number }, text: string) => void;

const phases: Record<string, Phase> = {
  EHLO: 'ehlo',
  HELO: 'ehlo',
  STARTTLS: 'starttls',
  MAIL: 'mail',
  RCPT: 'rcpt',
  DATA: 'data',
  QUIT: 'quit',
  // What the library says to a host that wants the message although it took no recipient.
  '.': 'dot',
};

/** The first digits that fit what is answered: RFC 5321 section 4.3.2. Nothing hangs on the answer to RSET or QUIT. */
const fitting: Record<Phase, RegExp> = {
  greeting: /^[245]/,
  ehlo: /^[245]/,
  starttls: /^[245]/,
  mail: /^[245]/,
  rcpt: /^[245]/,
  data: /^[345]/,
  dot: /^[245]/,
  quit: /^/,
};

/** After which the conversation goes on, so that a reply too many would be taken for the answer to what comes next. */
const afterConsent = new Set<Phase>(['greeting', 'ehlo', 'mail', 'rcpt', 'data']);
/** Refused EHLO, we say HELO; refused STARTTLS, we go on in clear. */
const afterRefusal = new Set<Phase>(['ehlo', 'starttls']);

const transaction = new Set<Phase>(['mail', 'rcpt', 'data', 'dot']);

/** `line`: what the connection knows of the bytes themselves. */
export function createWatch(timeouts: Timeouts, line: { heard(): void; ahead(): number }): Watch {
  const awaited: Phase[] = ['greeting'];
  let watched: Watched | null = null;
  let answered: Phase = 'greeting';
  let refusal: Refusal | null = null;
  let hasAnswer = false;
  let dotWritten = false;
  let securing = false;
  let timer: NodeJS.Timeout | undefined;

  /** With no reply awaited, either TLS is being negotiated or the message is on its way. */
  const phase = (): Phase => awaited[0] ?? (answered === 'data' ? 'dot' : answered);

  function limit(): number {
    const now = phase();
    if (securing && awaited.length === 0) return timeouts.tls;
    return now === 'quit' || now === 'starttls' ? timeouts.ehlo : timeouts[now];
  }

  function restartTimer(): void {
    clearTimeout(timer);
    if (!watched) return;
    const ms = limit();
    timer = setTimeout(
      () => trouble('timeout', `no answer within ${ms / 1000} s, waiting for ${phase()}`),
      ms,
    );
  }

  function trouble(kind: 'timeout' | 'not-smtp', detail: string): void {
    const told = watched;
    end();
    told?.onTrouble(kind, detail);
  }

  function onClient(text: string): void {
    watched?.transcript?.add('client', text);
    const verb = text.split(' ', 1)[0]!.toUpperCase();
    awaited.push(phases[verb] ?? 'quit');
    // Of a batch, the reply to its first command is the one that is waited for.
    if (awaited.length === 1) restartTimer();
  }

  function onServer(text: string): void {
    line.heard();
    watched?.transcript?.add('server', text);
    const isEarly = awaited.length === 0 && answered === 'data' && !dotWritten;
    answered = awaited.shift() ?? phase();
    hasAnswer = true;
    securing = false;
    const reply = parseReply(text);
    const problem = refusal ? null : problemOf(text, reply, isEarly);
    if (problem) trouble('not-smtp', problem);
    else {
      note(reply);
      restartTimer();
    }
  }

  /** Null where the reply is one that the conversation can go on or end with. */
  function problemOf(text: string, reply: Reply | null, isEarly: boolean): string | null {
    if (answered === 'quit') return null;
    if (!reply) return `not an SMTP reply: ${JSON.stringify(text.slice(0, 200))}`;
    if (!fitting[answered].test(text)) return `${reply.code} is no answer to ${answered}: ${reply.text}`;
    const isRefusal = reply.code >= 400;
    if (isEarly && !isRefusal) return `the host answered ${reply.code} before the message was out`;
    const goesOn = isRefusal ? afterRefusal.has(answered) : afterConsent.has(answered);
    return goesOn && line.ahead() > awaited.length ? 'the host speaks out of turn' : null;
  }

  function note(reply: Reply | null): void {
    if (!reply) return;
    if (answered === 'starttls' && reply.code < 300) securing = true;
    // A host that closes (421) does not go on in clear.
    const isFinal = transaction.has(answered) || (answered === 'starttls' && reply.code === 421);
    if (reply.code >= 400 && isFinal) refusal ??= { phase: answered, reply };
  }

  function onMessage(bytes: number): void {
    watched?.transcript?.add('client', `<message, ${bytes} bytes with its final dot>`);
    dotWritten = true;
    awaited.push('dot');
    restartTimer();
  }

  const debug: Log = (entry, text) => {
    if (entry.tnx === 'client') onClient(text);
    else if (entry.tnx === 'server') onServer(text);
  };
  const info: Log = (entry) => {
    if (entry.tnx === 'message') onMessage(entry.outByteCount ?? 0);
  };
  const warn: Log = ({ discarded }) => {
    const what = `the host said ${discarded} bytes in clear after agreeing to TLS; thrown away`;
    if (discarded) watched?.transcript?.add('note', what);
  };
  const ignore: Log = () => {};

  function end(): void {
    watched = null;
    clearTimeout(timer);
  }

  return {
    logger: { level: ignore, trace: ignore, debug, info, warn, error: ignore, fatal: ignore },
    begin(what) {
      watched = what;
      refusal = null;
      hasAnswer = false;
      dotWritten = false;
      restartTimer();
    },
    phase,
    answered: () => answered,
    refusal: () => refusal,
    hasAnswer: () => hasAnswer,
    afterDot: () => dotWritten,
    isSecuring: () => securing,
    end,
  };
}
