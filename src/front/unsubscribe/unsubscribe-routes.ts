/**
 * BASE/t/u/TOKEN unsubscribes from a stream (RFC 8058). Only POST does: mail readers send `List-Unsubscribe=One-Click`, and the
 * button of the page, which GET shows, sends what the page has. Scanners that follow links change nothing. A link that is not
 * genuine, or is of another customer's host, gets 404.
 *
 * An email from before the person subscribed again does not end the new subscription by one click: 409, and the page asks.
 */
import { randomBytes } from 'node:crypto';
import Router from '@koa/router';
import type { Context } from 'koa';
import { findStream } from '#accounts/rows/streams.ts';
import { BodyTooLarge, collectBody } from '#front/http/request-body.ts';
import { type StreamSubscription, stateOf, unsubscribe } from '#mail/record/rows/unsubscribes.ts';
import { readSubscription } from '#mail/record/tracking/subscription-text.ts';
import type { TrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { type UnsubscribeView, unsubscribePage } from './unsubscribe-page.ts';

interface UnsubscribeParts {
  db: Db;
  links: Pick<TrackingLinks, 'read' | 'isFor'>;
  /** The organizations that have this tracking host, which serves only their links; null: not a customer's host. */
  ownersOf(host: string): readonly string[] | null;
  eventSignal: { notify(): void };
  clock: Clock;
}

export function createUnsubscribe(parts: UnsubscribeParts): Router {
  const { db, eventSignal, clock } = parts;
  const router = new Router({ prefix: '/t/u', sensitive: true, strict: true });
  router.get('/:token', async (context) => {
    const subscription = subscriptionIn(context, parts);
    await show(context, db, subscription, await stateOf(db, subscription, clock.now()));
  });
  router.post('/:token', async (context) => {
    const subscription = subscriptionIn(context, parts);
    const by = byForm(await readForm(context));
    const terms = { via: by, now: clock.now(), isConfirmed: by === 'page' };
    const state = await unsubscribe(db, subscription, terms);
    eventSignal.notify();
    if (state === 'subscribed again') context.status = 409;
    await show(context, db, subscription, state);
  });
  return router;
}

function subscriptionIn(context: Context, { links, ownersOf }: UnsubscribeParts): StreamSubscription {
  const { token } = context.params;
  const read = links.read('unsubscribe', token);
  const host = context.hostname.replace(/\.$/, '').toLowerCase();
  const owners = ownersOf(host);
  if (!read || (owners !== null && !links.isFor(host, owners, token)))
    throw new Refusal('NOT_FOUND', 'This path does not exist.');
  return { deliveryId: read.deliveryId, ...readSubscription(read.target) };
}

/** What mail readers and the page send has some 100 bytes. */
const longestForm = 4096;

async function readForm({ req }: Context): Promise<string> {
  const bytes = await collectBody(req, longestForm, req.headers['content-length']).catch((error: unknown) => {
    if (error instanceof BodyTooLarge) throw new Refusal('BAD_REQUEST', 'The form is larger than 4 KiB.');
    throw error;
  });
  return bytes.toString();
}

/** RFC 8058 section 3.2: as a form of either type. Whatever else posts here has not been asked to. */
function byForm(form: string): 'one-click' | 'page' {
  if (/(?:^|&)from=page(?:&|$)/.test(form)) return 'page';
  if (/List-Unsubscribe(?:=|"\r?\n(?:[\w-]{1,40}:[^\r\n]{0,200}\r?\n){0,5}\r?\n)One-Click/i.test(form))
    return 'one-click';
  throw new Refusal(
    'BAD_REQUEST',
    'The form does not say List-Unsubscribe=One-Click (RFC 8058). Nothing was changed.',
  );
}

async function show(
  context: Context,
  db: Db,
  { orgId, stream: name, address }: StreamSubscription,
  state: UnsubscribeView['state'],
): Promise<void> {
  const stream = await findStream(db, orgId, name);
  const nonce = randomBytes(12).toString('base64');
  context.set('Cache-Control', 'no-store');
  context.set('Referrer-Policy', 'no-referrer');
  context.set('X-Robots-Tag', 'noindex');
  context.set('X-Content-Type-Options', 'nosniff');
  context.set(
    'Content-Security-Policy',
    `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  );
  context.type = 'html';
  const { title, color } = stream ?? { title: name, color: null };
  context.body = unsubscribePage({ state, title, color, address, nonce });
}
