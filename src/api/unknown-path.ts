/** The answer to a path that nothing here has. */
import type { Context } from 'koa';
import { Refusal } from '../mail/refusal.ts';

const maxShown = 200;

export function unknownPath({ method, path }: Context): Refusal {
  const shown = path.length > maxShown ? `${path.slice(0, maxShown)}…` : path;
  return new Refusal(
    'NOT_FOUND',
    `Postern does not have ${method} ${shown}. The page /docs lists what it has.`,
  );
}
