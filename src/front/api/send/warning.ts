/** The header that says what may go wrong with mail that was accepted all the same. */
import type { Context } from 'koa';
import { oneClickWarning } from '#platform/values/one-click.ts';

export function warnOfBulk(context: Context): void {
  context.set('X-Postern-Warning', oneClickWarning);
}
