/**
 * Recognises errors of the database itself, not of a statement: it cannot be reached, its connection is lost, its disk is
 * full. Every statement would fail then, and can be tried again later.
 */

/** Node's and PostgreSQL's codes for a connection lost during use: a commit may or may not have succeeded. */
const lost = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', '57P01', '57P02', '57P05', '08003', '08006'];
/** A demoted primary, which refuses all writes. */
const readOnly = '25006';
/** Codes for a connection that could not be opened. */
const unreachable = [
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
  ...['57P03', '53300', '08000', '08001', '08004', readOnly],
];

const lostWords = /connection terminated|connection ended|has been silent|not queryable/i;
const unreachableWords = /timeout expired|timeout acquiring a connection|due to connection timeout/i;

/** The connection was lost: the statement may or may not have been executed. */
export function isInDoubt(error: unknown): boolean {
  const { code, message } = about(error);
  return lost.includes(code) || lostWords.test(message);
}

/** The server of this connection accepts no writes; a new connection may reach its successor. */
export function isReadOnly(error: unknown): boolean {
  return about(error).code === readOnly;
}

export function isAway(error: unknown): boolean {
  const { code, message } = about(error);
  // A name with several addresses fails with one error for each.
  if (error instanceof AggregateError && error.errors.some(isAway)) return true;
  return isInDoubt(error) || unreachable.includes(code) || unreachableWords.test(message);
}

function about(error: unknown): { code: string; message: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return { code: String(code), message: String(message) };
}
