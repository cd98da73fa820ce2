/**
 * What is posted to an endpoint of webhooks: a test at once, what was posted lately, what is to be posted again. Both a test
 * and a replay end when their caller has gone; a replay can be given again.
 */
import type { Context } from 'koa';
import { listWebhookAttempts } from '../../db/webhooks/webhook-attempts.ts';
import { type ReplaySelection, replay } from '../../db/webhooks/webhook-replay-rows.ts';
import { Refusal } from '../../mail/refusal.ts';
import { testWebhook } from '../../webhooks/endpoints.ts';
import {
  type AddManagementRoutes,
  goneSignal,
  type Management,
  management,
  readJson,
} from '../management.ts';
import { readQuery } from '../query.ts';
import { createSlotsPerOrganization } from '../server-busy.ts';
import { presentAttempt, presentAttempts } from './present-webhook.ts';
import { webhookIn } from './routes.ts';
import { attemptsQuery, replayRequest } from './schema.ts';

/** An endpoint may take 15 seconds. */
const maxTests = 4;

export const addTestAndReplayRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  const one = '/webhooks/:id';
  router.post(
    `${one}/test`,
    inBounds,
    management(parts, (context, orgId) => test(context, orgId, parts), createSlotsPerOrganization(maxTests)),
  );
  router.get(
    `${one}/attempts`,
    inBounds,
    management(parts, (context, orgId) => list(context, orgId, parts)),
  );
  router.post(
    `${one}/replay`,
    inBounds,
    management(parts, (context, orgId) => again(context, orgId, parts), createSlotsPerOrganization(1)),
  );
};

async function test(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, attemptWebhook, clock } = parts;
  const webhook = await webhookIn(context, orgId, parts);
  const attempt = await testWebhook(db, webhook, {
    tryIt: attemptWebhook,
    clock,
    signal: goneSignal(context),
  });
  return { id: webhook.id, ok: attempt.error === null, attempt: presentAttempts(attempt) };
}

async function list(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await webhookIn(context, orgId, parts);
  const { limit, ...query } = readQuery(context, attemptsQuery);
  const attempts = await listWebhookAttempts(parts.db, id, { ...query, limit: limit + 1 });
  const page = attempts.slice(0, limit);
  return { attempts: page.map(presentAttempt), next: attempts.length > limit ? page.at(-1)!.id : null };
}

async function again(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, clock, eventSignal } = parts;
  const webhook = await webhookIn(context, orgId, parts);
  const selection = selectionOf(await readJson(context, replayRequest), clock.now());
  const replayed = await replay(db, webhook, selection, clock.now(), goneSignal(context));
  if ('eventId' in selection && replayed === 0) throw new Refusal('NOT_FOUND', 'There is no such event.');
  eventSignal.ring();
  return { id: webhook.id, replayed };
}

interface Asked {
  eventId?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
}

/** As the schema has seen to it, one of the three. */
function selectionOf({ eventId, since, until }: Asked, now: number): ReplaySelection {
  if (eventId !== undefined) return { eventId };
  return since === undefined ? { failed: true } : { since, until: until ?? now };
}
