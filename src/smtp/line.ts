/**
 * A line to a host: the library's connection, what watches over it, and the socket below both. Here it is attended to
 * for one stretch (the opening, or a mail) and ended, politely or at once.
 */
import type { Socket } from 'node:net';
import type { Ending } from '../outcome.ts';
import type { Connection } from './connection.ts';
import { endingOf, type LibraryError, lostEnding, type Trouble, troubleEnding } from './endings.ts';
import type { Transcript } from './transcript.ts';
import type { Watch } from './watch.ts';

export interface Line {
  connection: Connection;
  watch: Watch;
  socket: Socket;
  /** Resolves when the socket is gone. */
  closed: Promise<void>;
}

const politenessMs = 1_000;

/**
 * Watches over one stretch of a session (the opening, or a mail) and ends it once: `done` with null where it ended
 * well, `fail` with the library's error; a deadline, rubbish, a loss and the stop end it by themselves. `onFailed`
 * hears of every end but `done(null)` and of acceptance.
 */
export function attend(
  line: Line,
  transcript: Transcript,
  stopped: AbortSignal,
  onFailed: (ending: Ending) => void,
) {
  const { connection, watch } = line;
  let isOver = false;
  const done = (ending: Ending | null) => {
    if (isOver) return;
    isOver = true;
    watch.end();
    stopped.removeEventListener('abort', interrupt);
    connection.removeListener('error', fail);
    connection.removeListener('end', lost);
    // The library's errors never go unheard.
    connection.on('error', ignore);
    if (ending === null || ending.kind === 'accepted') return;
    if ('detail' in ending) transcript.add('note', ending.detail);
    onFailed(ending);
  };
  const fail = (error: LibraryError) => done(endingOf(error, watch));
  const lost = () => done(lostEnding(watch, 'the connection was closed'));
  const onTrouble = (kind: Trouble, detail: string) => {
    const ending = troubleEnding(kind, detail, watch);
    if (!('detail' in ending)) transcript.add('note', detail);
    done(ending);
    destroy(line);
  };
  const interrupt = () => onTrouble('interrupted', 'this server was stopped during the conversation');
  connection.removeListener('error', ignore);
  connection.on('error', fail);
  connection.on('end', lost);
  stopped.addEventListener('abort', interrupt, { once: true });
  watch.begin({ transcript, onTrouble });
  if (stopped.aborted) interrupt();
  return { done, fail, lost };
}

function ignore(): void {}

/** Politely, within a second; resolves when the socket is gone. */
export function quit(line: Line): Promise<void> {
  const { connection, closed } = line;
  if (connection.destroyed) destroy(line);
  else {
    const impatient = setTimeout(() => destroy(line), politenessMs).unref();
    closed.then(() => clearTimeout(impatient));
    connection.quit();
  }
  return closed;
}

export function destroy({ connection, socket }: Line): void {
  connection.close();
  // The TLS socket, where there is one; and what it is wrapped around.
  if (connection._socket) connection._socket.destroy();
  socket.destroy();
}
