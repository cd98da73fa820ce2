/** What a page can refuse with: a status and words for people. Everything else that is thrown is trouble of ours. */
import { pausedMessage } from '../accounts/create-organization.ts';
import type { Pause } from '../db/accounts/organizations.ts';
import { Refusal, statusOf } from '../mail/refusal.ts';

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
  return new PageError(404, 'Not found', `There is no such ${what}, or it is not yours to see.`);
}

export function forbidden(message: string): PageError {
  return new PageError(403, 'Not allowed', message);
}

export function paused(pause: Pause): PageError {
  return new PageError(403, 'This organization is paused', pausedMessage(pause));
}

/** The form was made for another session, or too long ago. */
export function staleForm(): PageError {
  const message =
    'This form is no longer valid: you have signed in or out since. Go back, reload the page and try again.';
  return new PageError(403, 'The form has expired', message);
}

/** Null: trouble of ours. */
export function asPageError(error: unknown): PageError | null {
  if (error instanceof PageError) return error;
  if (error instanceof Refusal && error.code !== 'SEND_FAILED') {
    const titles: Record<number, string> = { 404: 'Not found', 403: 'Not allowed', 429: 'Too much at once' };
    const status = statusOf[error.code];
    return new PageError(status, titles[status] ?? 'That did not work', error.message);
  }
  const { status } = error as { status?: number };
  if (status !== undefined && status >= 400 && status < 500)
    return new PageError(status, 'That did not work', 'The request is malformed.');
  return null;
}
