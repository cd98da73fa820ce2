/** POST /api/public/email/batch (docs/api.md section 4.1.1). */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import type { Caller } from '#accounts/api-keys.ts';
import type { Endpoint } from '#front/api/endpoint.ts';
import { anyError } from '#front/api/openapi/error-responses.ts';
import { nameIgnored } from '#front/http/ignored.ts';
import { errorInBatch } from '#front/http/issues.ts';
import { readQuery } from '#front/http/query.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { recipientsIn } from '#mail/record/refused-sends.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { Refusal, statusOf } from '#platform/values/refusal.ts';
import type { AcceptBatch } from './accept-batch.ts';
import { LargeBatches, parseSends } from './batch-body.ts';
import { checkSend, type FetchAll } from './check-send.ts';
import { acceptCounted, type CountedParts } from './counted-batch.ts';
import { refuseLike } from './dry-run.ts';
import { fetcherOf } from './fetcher.ts';
import { asReply, type FindReceived } from './in-reply-to.ts';
import { type SendParts, sendErrors, withSendSlot } from './routes.ts';
import { sendSchema } from './schema.ts';
import { batchBody, maxElements } from './send-body.ts';
import { presentSend, sendAnswer } from './send-response.ts';
import { ignoredNames, type UnknownMember } from './unknown-members.ts';
import { warnOfBulk } from './warning.ts';

export interface BatchParts extends SendParts, CountedParts {
  clock: Clock;
  onError(what: string, error: unknown): void;
}

export const batchRequest = z.array(sendSchema).min(1).max(maxElements).meta({
  description: 'Sends, each as for `POST /api/public/email/send` and with an `idempotencyKey` of its own.',
});

const batchQuery = z.object({
  atomic: z.enum(['true', 'false'], { error: 'must be true or false' }).optional().meta({
    description:
      '`true`: accept all elements or none. The response to a bad element is then the error of the first, with its `index`.',
  }),
});

const result = z.object({
  index: z.int().meta({ description: 'The position in the request, from 0.' }),
  status: z.int().meta({ description: 'The status that a send by itself would have.' }),
  replayed: z
    .literal(true)
    .optional()
    .meta({ description: 'The body is that of an earlier send that this one repeats.' }),
  body: z.union([sendAnswer, anyError]),
});

export const batchAnswer = z
  .object({ results: z.array(result) })
  .meta({ description: 'One result for each element, in their order.' });

type BatchAnswer = z.input<typeof batchAnswer>;

export const batchEndpoints: Endpoint<BatchParts>[] = [
  {
    route: 'POST /email/batch',
    operationId: 'sendBatch',
    tag: 'Email',
    summary: 'Send up to 100 emails',
    description:
      'Accepts each email as `POST /api/public/email/send` does, all of them in one commit. A bad element does not affect the ' +
      'others, unless `atomic=true`. The batch is one call of the second, and each element is a request of the day.',
    scopes: ['email:send', 'full_access'],
    query: batchQuery,
    body: {
      description: 'The emails: at most 50 MiB.',
      content: { 'application/json': batchRequest },
      limits: batchBody,
    },
    response: {
      description: 'The batch was handled; `results` says what became of each element.',
      headers: ['X-Postern-Held'],
      content: { 'application/json': batchAnswer },
    },
    errors: sendErrors,
    handler: (parts) => sendBatch(parts, new LargeBatches(parts.clock)),
  },
];

function sendBatch(parts: BatchParts, largeBatches: LargeBatches): Middleware {
  return withSendSlot(parts, async (context, caller, slot) => {
    const isAtomic = isAtomicIn(context);
    if (context.req.headers['idempotency-key'] !== undefined)
      throw new Refusal(
        'BAD_REQUEST',
        'A batch takes no Idempotency-Key header. Give each element an idempotencyKey of its own.',
      );
    const reader = largeBatches.reader(slot);
    try {
      const elements = await reader.elements(context.req);
      context.body = await handle(parts, context, { elements, caller, slot, isAtomic });
      context.res.once('finish', () => failpoint('answered'));
    } finally {
      reader.release();
    }
  });
}

/** A misspelt name is refused, because ignoring it would send. */
function isAtomicIn(context: Context): boolean {
  refuseLike(context, 'atomic');
  refuseLike(context, 'dryRun', 'a batch cannot be a dry run');
  return readQuery(context, batchQuery).atomic === 'true';
}

interface Batch {
  elements: Buffer[];
  caller: Caller;
  slot: ByteHold;
  isAtomic: boolean;
}

async function handle(
  parts: BatchParts,
  context: Context,
  { elements, caller, slot, isAtomic }: Batch,
): Promise<BatchAnswer> {
  const { requestId } = context.state;
  const fetchAll = fetcherOf(parts, context, caller, slot);
  const ignored: UnknownMember[] = [];
  const requests = requestsIn(elements, {
    caller,
    requestId,
    fetchAll,
    ignored,
    onLacksOneClick: () => warnOfBulk(context),
    findReceived: parts.findReceived,
  });
  try {
    const batch = { requests, count: elements.length, isAtomic };
    const results = await acceptCounted(parts, context, caller, batch);
    return {
      results: results.map((one, index) =>
        present(one, index, requestId, { ...parts, count: results.length }),
      ),
    };
  } finally {
    nameIgnored(context, ignoredNames(ignored));
  }
}

interface Origin {
  caller: Caller;
  requestId: string;
  fetchAll: FetchAll;
  ignored: UnknownMember[];
  onLacksOneClick(): void;
  findReceived: FindReceived;
}

/** More than the header names. */
const maxIgnored = 20;

async function* requestsIn(elements: Buffer[], origin: Origin): AsyncGenerator<SendRequest | Refusal> {
  const { caller, requestId, fetchAll, ignored, onLacksOneClick, findReceived } = origin;
  let index = 0;
  for await (const body of parseSends(elements)) {
    try {
      if (body instanceof Refusal) throw body;
      const checked = checkSend(body, { caller, requestId, fetchAll }, (found) => {
        const room = Math.max(maxIgnored - ignored.length, 0);
        const at = String(index);
        ignored.push(...found.slice(0, room).map((one) => ({ ...one, path: [at, ...one.path] })));
      });
      const request = await asReply(findReceived, checked, caller);
      yield { ...request, isInBatch: true, onLacksOneClick };
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      refusal.recipients = recipientsIn(body);
      yield refusal;
    }
    index += 1;
  }
}

type Result = Awaited<ReturnType<AcceptBatch>>[number];

function present(
  one: Result,
  index: number,
  requestId: string,
  { onError, count }: Pick<BatchParts, 'onError'> & { count: number },
): BatchAnswer['results'][number] {
  if (!(one instanceof Refusal)) {
    const body = presentSend(one.answer);
    return { index, status: 200, ...(one.replayed && { replayed: true as const }), body };
  }
  if (one.code === 'SEND_FAILED') onError(`element ${index} of request ${requestId} failed`, one.cause);
  return { index, status: statusOf[one.code], body: errorInBatch(one, count) };
}
