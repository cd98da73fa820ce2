/**
 * Follows a conversation through the log of nodemailer's connection: which command the next reply answers, when
 * that reply is overdue, what goes into the transcript, whether the final dot has been written to the socket.
 * One watch is one conversation.
 */
import type { Phase } from '../outcome.ts';
import type { Timeouts } from './session.ts';
import type { Transcript } from './transcript.ts';

export interface Watch {
  logger: Record<'level' | 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal', Log>;
  /** What is being waited for. */
  phase(): Phase;
  /** What the newest reply answered. */
  answered(): Phase;
  /** The whole message and its final dot have been written: a loss from here on leaves the other side's answer open. */
  afterDot(): boolean;
  /** STARTTLS was agreed on and nothing has been said under its protection yet. */
  inHandshake(): boolean;
  end(): void;
}

type Log = (entry: { tnx?: string; outByteCount?: number }, text: string) => void;

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

export function createWatch(
  { timeouts, transcript }: { timeouts: Timeouts; transcript: Transcript },
  onOverdue: (detail: string) => void,
): Watch {
  const awaited: Phase[] = ['greeting'];
  let answered: Phase = 'greeting';
  let dotWritten = false;
  let timer: NodeJS.Timeout | undefined;
  let ended = false;

  /** With no reply awaited, either TLS is being negotiated or the message is on its way. */
  const phase = (): Phase => awaited[0] ?? (answered === 'data' ? 'dot' : answered);

  const inHandshake = () => awaited.length === 0 && answered === 'starttls';

  function limit(): number {
    const now = phase();
    if (inHandshake()) return timeouts.tls;
    return now === 'quit' || now === 'starttls' ? timeouts.ehlo : timeouts[now];
  }

  function restartTimer(): void {
    clearTimeout(timer);
    if (ended) return;
    const ms = limit();
    timer = setTimeout(() => onOverdue(`no answer within ${ms / 1000} s, waiting for ${phase()}`), ms);
  }

  function onClient(text: string): void {
    transcript.add('client', text);
    const verb = text.split(' ', 1)[0]!.toUpperCase();
    awaited.push(phases[verb] ?? 'quit');
    restartTimer();
  }

  function onServer(text: string): void {
    transcript.add('server', text);
    answered = awaited.shift() ?? answered;
    restartTimer();
  }

  function onMessage(bytes: number): void {
    transcript.add('client', `<message, ${bytes} bytes with its final dot>`);
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
  const ignore: Log = () => {};

  restartTimer();
  return {
    logger: { level: ignore, trace: ignore, debug, info, warn: ignore, error: ignore, fatal: ignore },
    phase,
    answered: () => answered,
    afterDot: () => dotWritten,
    inHandshake,
    end() {
      ended = true;
      clearTimeout(timer);
    },
  };
}
