/**
 * What tracking links answer: the pixel an image, a click a redirect to where the link led before. A link that is
 * not genuine is an unknown path, and redirects nowhere.
 *
 * The answer never waits for the database: the visit is handed to `record` and the trouble of that goes to onTrouble.
 * Visits beyond what may wait for the database are answered and forgotten: memory is bounded, whoever knocks.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import { clientAddress } from '../api/authorize.ts';
import type { Clock } from '../base/clock.ts';
import { Refusal } from '../mail/refusal.ts';
import type { LinkKind, LinkRead, TrackingLinks } from './tracking-links.ts';
import type { Visit } from './visit.ts';

export interface TrackingParts {
  links: Pick<TrackingLinks, 'read'>;
  record(visit: Visit): Promise<unknown>;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

export interface TrackingEndpoints {
  router: Router;
  /** Resolves when every visit that came so far is recorded. */
  settled(): Promise<void>;
}

/** One transparent pixel: a GIF of 43 octets. */
const pixel = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');

const maxWaiting = 10_000;

export function createTracking({ links, record, onError, clock }: TrackingParts): TrackingEndpoints {
  const waiting = new Set<Promise<unknown>>();

  function remember(visit: Visit): void {
    if (waiting.size >= maxWaiting) return;
    const one = record(visit)
      .catch((error) => onError(`a visit (${visit.event}) could not be recorded`, error))
      .finally(() => waiting.delete(one));
    waiting.add(one);
  }

  function visited(context: Context, event: LinkKind): LinkRead {
    const read = links.read(event, context.params.token);
    if (!read) throw new Refusal('NOT_FOUND', 'There is nothing at this path.');
    const url = event === 'click' ? read.target : null;
    remember({ ...factsOf(context), event, deliveryId: read.deliveryId, url, at: clock.now() });
    context.set('Cache-Control', 'no-store, no-cache, must-revalidate, private, max-age=0');
    context.set('Pragma', 'no-cache');
    context.set('Expires', '0');
    return read;
  }

  const router = new Router({ prefix: '/t', sensitive: true, strict: true });
  router.get('/o/:token', (context) => {
    visited(context, 'open');
    context.type = 'image/gif';
    context.body = pixel;
  });
  router.get('/c/:token', (context) => {
    const { target } = visited(context, 'click');
    context.set('Location', /^[\x21-\x7e]+$/.test(target) ? target : new URL(target).href);
    context.set('Referrer-Policy', 'no-referrer');
    context.body = '';
    context.status = 302;
  });

  return {
    router,
    async settled() {
      await Promise.all(waiting);
    },
  };
}

/** Of what strangers send, and we keep. */
const longestFact = 500;

function factsOf(context: Context): Pick<Visit, 'method' | 'userAgent' | 'purpose' | 'ip'> {
  const purposes = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].map((name) => context.get(name));
  return {
    method: context.method,
    userAgent: context.get('user-agent').slice(0, longestFact),
    purpose: purposes.join(' ').trim(),
    ip: clientAddress(context).slice(0, longestFact),
  };
}
