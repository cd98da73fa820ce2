/**
 * Trouble that is the database's own and not that of what it was asked: it cannot be reached, it goes away, it has no
 * room. What fails so fails for everybody, and can be tried again.
 */

/** Node's and PostgreSQL's codes of a connection that was lost while it was used: whether a commit got through is open. */
const lost = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', '57P01', '57P02', '57P05', '08003', '08006'];
/** What a primary says that has been demoted: nothing is written here any more. */
const readOnly = '25006';
/** And of one that could not be had. */
const unreachable = [
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
  ...['57P03', '53300', '08000', '08001', '08004', readOnly],
];

const lostWords = /connection terminated|connection ended|has been silent|not queryable/i;
const unreachableWords = /timeout expired|timeout acquiring a connection|due to connection timeout/i;

/** The connection was lost: whether what was asked for has happened is not known. */
export function isInDoubt(error: unknown): boolean {
  const { code, message } = about(error);
  return lost.includes(code) || lostWords.test(message);
}

/** The connection leads to a server that takes no writes; a new one may lead to its successor. */
export function isReadOnly(error: unknown): boolean {
  return about(error).code === readOnly;
}

export function isAway(error: unknown): boolean {
  const { code, message } = about(error);
  // Names that resolve to several addresses fail once for each.
  if (error instanceof AggregateError && error.errors.some(isAway)) return true;
  return isInDoubt(error) || unreachable.includes(code) || unreachableWords.test(message);
}

function about(error: unknown): { code: string; message: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return { code: String(code), message: String(message) };
}
