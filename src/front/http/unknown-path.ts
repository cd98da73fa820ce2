/** The answers to a path that nothing here has, and to a method that a path does not have. */
import type { Context } from 'koa';
import { Refusal } from '#platform/values/refusal.ts';

const maxShown = 200;

export function unknownPath({ method, path }: Context): Refusal {
  const shown = path.length > maxShown ? `${path.slice(0, maxShown)}…` : path;
  return new Refusal(
    'NOT_FOUND',
    `Postern does not have ${method} ${shown}. The page /docs lists what it has.`,
  );
}

/** 405; `Allow` lists the methods of the path (RFC 9110 section 15.5.6). */
export function wrongMethod(context: Context, methods: readonly string[]): Refusal {
  const allowed = [...new Set(methods)].join(', ');
  context.set('Allow', allowed);
  const advice = /^\/api\/public\/emails?(\/send)?$/.test(context.path)
    ? ' Send with POST /api/public/email/send.'
    : '';
  return new Refusal('BAD_REQUEST', `This path accepts only ${allowed}.${advice}`);
}
