/**
 * One SMTP session over a socket that is already connected: `openSession` takes it through greeting, EHLO (or HELO),
 * STARTTLS and the check of what it gives against what is demanded; then it carries mails, one transaction after the
 * other. Reports how each ended and decides nothing; outcome.ts judges.
 *
 * The protocol is nodemailer's connection (pipelining, dot-stuffing, EHLO then HELO); watch.ts follows it, so that
 * whatever goes wrong, the report can say where, and whether the final dot was out (then the message may have been
 * taken). Nothing of a mail goes out over a connection that does not meet the demand.
 */
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsUsed } from '../nouns.ts';
import type { Ending } from '../outcome.ts';
import { Connection } from './connection.ts';
import { attend, destroy, type Line, quit } from './line.ts';
import { type Demand, type Protection, protectionOf } from './tls.ts';
import { isStale, type Mail, obstacle, reset, transact } from './transaction.ts';
import type { Transcript } from './transcript.ts';
import { createWatch, type Timeouts, type Watch } from './watch.ts';

export interface Opening {
  socket: Socket;
  /** The MX's name, for SNI and for checking its certificate, and the address it was reached at. */
  host: string;
  address: string;
  /** The domain whose mail the host takes: DANE lets its certificate bear that name. */
  domain: string;
  /** Our own name, said in EHLO. */
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
  | { ending: Ending; tls: TlsUsed | null; closed: Promise<void> };

export interface Session {
  readonly host: string;
  readonly address: string;
  /** Transactions begun. */
  readonly mails: number;
  /** It can carry another mail, as far as we have heard. */
  readonly isAlive: boolean;
  readonly closed: Promise<void>;
  /** Calls back when the host, or the line, ended the session. */
  onEnd(action: () => void): void;
  protection(demand: Demand, domain: string): Protection;
  /** `stale`: the host had hung up before it heard of this mail, which was not to be known. */
  send(mail: Mail, transcript: Transcript, stopped: AbortSignal): Promise<{ ending: Ending; stale: boolean }>;
  /** Makes ready for another mail (RSET where the last one was refused); false where that is not possible. */
  tidy(): Promise<boolean>;
  /** Politely, within a second; resolves when the socket is gone. */
  quit(): Promise<void>;
}

/** Made once: it holds the authorities' certificates. */
let secureContext: SecureContext | undefined;

export function openSession(opening: Opening): Promise<Opened> {
  const { socket, timeouts, host } = opening;
  socket.setNoDelay(true);
  const watch = createWatch(timeouts, { heard: () => connection.heard(), ahead: () => connection.ahead });
  secureContext ??= createSecureContext();
  const connection = new Connection({
    connection: socket,
    host,
    name: opening.name,
    ignoreTLS: !opening.startTls,
    opportunisticTLS: true,
    tls: { rejectUnauthorized: false, secureContext },
    logger: watch.logger,
  });
  const closed = new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
  const line: Line = { connection, watch, socket, closed };

  return new Promise<Opened>((resolve) => {
    const { done, fail, lost } = attend(line, opening.transcript, opening.stopped, (ending) => {
      resolve({ ending, tls: null, closed });
      if (ending.kind === 'refused') quit(line);
      else destroy(line);
    });
    // Before the library listens, nobody but us hears the socket close.
    closed.then(() => setImmediate(lost));
    connection.connect((error) => {
      if (error) return fail(error);
      const refusal = watch.refusal();
      if (refusal) return done({ kind: 'refused', ...refusal });
      done(null);
      const protection = protectionOf(connection._socket as Socket, opening.demand, opening);
      const why = protection.tls || !opening.startTls ? '' : reasonForClear(watch);
      opening.transcript.add('note', protection.note + why);
      if (protection.unmet === null) return resolve({ session: createSession(line, opening), protection });
      const detail = protection.unmet + why;
      opening.transcript.add('note', detail);
      resolve({ ending: { kind: 'tls-required', detail }, tls: protection.tls, closed });
      quit(line);
    });
  });
}

function reasonForClear(watch: Watch): string {
  return watch.answered() === 'starttls' ? ': it refuses STARTTLS' : ': it does not offer STARTTLS';
}

function createSession(line: Line, opening: Opening): Session {
  const { connection, watch, closed } = line;
  const { host, address } = opening;
  const sizeLimit = connection.sizeLimit;
  connection.ignoreItsSizeLimit();
  let mails = 0;
  let last: Ending | null = null;
  let onEnd = () => {};
  connection.on('end', () => onEnd());

  return {
    host,
    address,
    closed,
    get mails() {
      return mails;
    },
    get isAlive() {
      return !connection.destroyed && connection.ahead === 0 && (connection._socket as Socket).writable;
    },
    onEnd(action) {
      onEnd = action;
    },
    protection: (demand, domain) => protectionOf(connection._socket as Socket, demand, { host, domain }),
    async send(mail, transcript, stopped) {
      const isReused = mails++ > 0;
      const impossible = obstacle(connection, mail, sizeLimit);
      if (impossible) transcript.add('note', impossible.detail);
      last = impossible ?? (await transact(line, mail, transcript, stopped));
      return { ending: last, stale: isReused && isStale(last, watch) };
    },
    async tidy() {
      if (!this.isAlive || last === null) return false;
      if (last.kind === 'refused') return last.reply.code !== 421 && (await reset(line));
      return last.kind === 'accepted' || last.kind === 'too-big' || last.kind === 'no-smtputf8';
    },
    quit: () => quit(line),
  };
}
