/** Errors that a page shows to people: a status, a title and a message. Any other error becomes a 500. */
import { pausedMessage } from '#accounts/create-organization.ts';
import type { Pause } from '#accounts/rows/organizations.ts';
import { Refusal, statusOf } from '#platform/values/refusal.ts';

export class PageError extends Error {
  readonly status: number;
  readonly title: string;

  constructor(status: number, title: string, message: string) {
    super(message);
    this.status = status;
    this.title = title;
  }
}

export function notFound(what = 'page'): PageError {
  return new PageError(404, 'Not found', `This ${what} does not exist, or you have no access to it.`);
}

export function forbidden(message: string): PageError {
  return new PageError(403, 'Not allowed', message);
}

export function paused(pause: Pause): PageError {
  return new PageError(403, 'This organization is paused', pausedMessage(pause));
}

/** The CSRF token of the form belongs to another session. */
export function staleForm(): PageError {
  const message =
    'You have signed in or out since this form was opened. Go back, reload the page and try again.';
  return new PageError(403, 'The form has expired', message);
}

/** Null for an internal error. */
export function asPageError(error: unknown): PageError | null {
  if (error instanceof PageError) return error;
  if (error instanceof Refusal && error.code !== 'SEND_FAILED') {
    const titles: Record<number, string> = { 404: 'Not found', 403: 'Not allowed', 429: 'Too many requests' };
    const status = statusOf[error.code];
    return new PageError(status, titles[status] ?? 'Request failed', error.message);
  }
  const { status } = error as { status?: number };
  if (status !== undefined && status >= 400 && status < 500)
    return new PageError(status, 'Request failed', 'The request is malformed.');
  return null;
}
