/**
 * A path that a route names word for word is that route's, whatever the method: `PATCH /email/send` is a wrong method, and not
 * an email with the id `send`, although `PATCH /email/:id` matches it.
 */
import type { Layer } from '@koa/router';
import type { Context, Middleware } from 'koa';

/** The methods of a path: those of its routes with the fewest parameters. `layers`: all that match it. */
export function methodsOf(layers: readonly Layer[]): string[] {
  const fewest = Math.min(...layers.map(({ paramNames }) => paramNames.length));
  return layers.flatMap(({ paramNames, methods }) => (paramNames.length === fewest ? methods : []));
}

/** The first middleware of a route. */
export function ownMethods(answerOther: (context: Context, methods: string[]) => Promise<void>): Middleware {
  return (context, next) => {
    const methods = methodsOf(context.matched);
    return methods.includes(context.method) ? next() : answerOther(context, methods);
  };
}
