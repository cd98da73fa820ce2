/** Counts HTTP requests by route, and refused sends of the API and of SMTP submission. */
import type { Middleware } from 'koa';
import { type MailHandler, SmtpRefusal } from '#platform/values/mail-handler.ts';
import { type RefusalCode, statusOf } from '#platform/values/refusal.ts';
import type { Metrics } from './metrics.ts';

const sendRoute = '/api/public/email/send';

/** The first middleware. `route` is the router's pattern, or `other` for an unknown path, whatever its method. */
export function countRequests({ answered, refused }: Pick<Metrics, 'answered' | 'refused'>): Middleware {
  return async (context, next) => {
    const begun = performance.now();
    await next();
    const matched: unknown = context._matchedRoute;
    const isKnown = typeof matched === 'string';
    const [method, route] = isKnown ? [context.method, matched] : ['other', 'other'];
    answered({ method, route, status: context.status, ms: performance.now() - begun });
    if (route === sendRoute && context.status >= 400) refused('api', (context.body as Answer).error);
  };
}

interface Answer {
  error: RefusalCode;
}

/** The SMTP reply to a refusal of the API begins with its error code (docs/api.md). */
export function countRefusals<User>(
  handler: MailHandler<User>,
  refused: Metrics['refused'],
): MailHandler<User> {
  async function counted<Result>(step: Promise<Result>): Promise<Result> {
    try {
      return await step;
    } catch (error) {
      const code = error instanceof SmtpRefusal ? /^[A-Z_]+(?=:)/.exec(error.message)?.[0] : undefined;
      if (code !== undefined && code in statusOf) refused('smtp', code as RefusalCode);
      throw error;
    }
  }
  const { authenticate } = handler;
  return {
    ...handler,
    authenticate: authenticate && ((...login) => counted(authenticate(...login))),
    onMailFrom: (...mail) => counted(handler.onMailFrom(...mail)),
    onRcpt: (...rcpt) => counted(handler.onRcpt(...rcpt)),
    onMessage: (...message) => counted(handler.onMessage(...message)),
  };
}
