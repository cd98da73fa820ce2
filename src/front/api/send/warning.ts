/** The header that says what may go wrong with mail that was accepted all the same. */
import type { Context } from 'koa';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { oneClickWarning } from '#platform/values/one-click.ts';

export function warnOf(context: Context, { lacksOneClick }: Pick<SendRequest, 'lacksOneClick'>): void {
  if (lacksOneClick) context.set('X-Postern-Warning', oneClickWarning);
}
