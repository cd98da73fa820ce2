/**
 * Responds to tracking links: an image for the pixel, and for a click a redirect to the original target. A link that is
 * not genuine gets 404 and redirects nowhere.
 *
 * The response never waits for the database: the visit is passed to `record`, and its errors to `onError`. When too many
 * visits wait for the database, further ones are answered but not recorded, so that memory is bounded.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import type { Visit } from '#mail/record/visit.ts';
import type { Clock } from '#platform/base/clock.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { LinkRead, TrackingLinks, VisitKind } from './tracking-links.ts';

export interface TrackingParts {
  links: Pick<TrackingLinks, 'read' | 'isFor'>;
  /** The organizations that have this tracking host, which serves only their links; null: not a customer's host. */
  ownersOf(host: string): readonly string[] | null;
  record(visit: Visit): Promise<unknown>;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

/** One transparent pixel: a GIF of 43 bytes. */
const pixel = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');

const maxWaiting = 10_000;

export function createTracking({ links, ownersOf, record, onError, clock }: TrackingParts) {
  const waiting = new Set<Promise<unknown>>();

  function recordLater(visit: Visit): void {
    if (waiting.size >= maxWaiting) return;
    const one = record(visit)
      .catch((error) => onError(`a visit (${visit.event}) could not be recorded`, error))
      .finally(() => waiting.delete(one));
    waiting.add(one);
  }

  function readVisit(context: Context, event: VisitKind): LinkRead {
    const read = links.read(event, context.params.token);
    const host = context.hostname.replace(/\.$/, '').toLowerCase();
    const owners = event === 'click' ? ownersOf(host) : null;
    const isAnothers = owners !== null && !links.isFor(host, owners, context.params.token);
    if (!read || isAnothers) throw new Refusal('NOT_FOUND', 'This path does not exist.');
    const url = event === 'click' ? read.target : null;
    recordLater({ ...visitorOf(context), event, deliveryId: read.deliveryId, url, at: clock.now() });
    context.set('Cache-Control', 'no-store, no-cache, must-revalidate, private, max-age=0');
    context.set('Pragma', 'no-cache');
    context.set('Expires', '0');
    return read;
  }

  const router = new Router({ prefix: '/t', sensitive: true, strict: true });
  router.get('/o/:token', (context) => {
    readVisit(context, 'open');
    context.type = 'image/gif';
    context.body = pixel;
  });
  router.get('/c/:token', (context) => {
    const { target } = readVisit(context, 'click');
    context.set('Location', /^[\x21-\x7e]+$/.test(target) ? target : new URL(target).href);
    context.set('Referrer-Policy', 'no-referrer');
    context.body = '';
    context.status = 302;
  });

  return {
    router,
    /** Resolves when every visit so far is recorded. */
    async settled(): Promise<void> {
      await Promise.all(waiting);
    },
  };
}

/** The maximum length of each header value that we store. */
const maxFactLength = 500;

function visitorOf(context: Context): Pick<Visit, 'method' | 'userAgent' | 'purpose' | 'ip'> {
  const purposes = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].map((name) => context.get(name));
  return {
    method: context.method,
    userAgent: context.get('user-agent').slice(0, maxFactLength),
    purpose: purposes.join(' ').trim(),
    ip: clientAddress(context).slice(0, maxFactLength),
  };
}
