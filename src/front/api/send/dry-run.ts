/** `dryRun=true`: what a send would do, without doing it. */
import type { Context } from 'koa';
import { z } from 'zod';
import { readQuery } from '#front/http/query.ts';
import { readHead } from '#mail/compose/head.ts';
import { closestName } from '#platform/base/closest-name.ts';
import type { SendAnswerRecord } from '#platform/database/tables/send-record.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { presentSend, sendAnswer } from './send-response.ts';

export const sendQuery = z.object({
  dryRun: z.enum(['true', 'false'], { error: 'must be true or false' }).optional().meta({
    description:
      '`true`: run every check and compose the message, but charge, store and send nothing. The call counts as a request.',
  }),
});

export function isDryRun(context: Context): boolean {
  if (context.querystring === '') return false;
  refuseLike(context, 'dryRun');
  return readQuery(context, sendQuery).dryRun === 'true';
}

/** Refuses parameters whose name is nearly `name`, because ignoring them would send. With `reason`, `name` itself too. */
export function refuseLike(context: Context, name: string, reason?: string): void {
  for (const given of Object.keys(context.query)) {
    if (closestName(given, [name]) === null || (given === name && reason === undefined)) continue;
    const message = `${given.slice(0, 64)}: ${reason ?? `unknown parameter; did you mean ${name}?`}`;
    const issue = { code: 'unrecognized_keys', expected: name, received: 'string', path: [given], message };
    throw new Refusal('VALIDATION_ERROR', 'A parameter of the query is not valid.', { issues: [issue] });
  }
}

/** Has every member of a send's response, so that clients in typed languages read both in the same way. */
export const dryRunAnswer = sendAnswer
  .extend({
    dryRun: z.literal(true),
    message: z
      .object({
        size: z.int().meta({ description: 'In bytes, as it would be sent.' }),
        headers: z
          .array(z.object({ name: z.string(), value: z.string() }))
          .meta({ description: 'In the order of the message, unfolded; at most the first 500, or 100 KiB.' }),
      })
      .meta({
        description: 'The composed and signed message; with tracking, the copy of the first recipient.',
      }),
  })
  .meta({
    description:
      'What the send would do now. Nothing was charged, stored or sent. `id` and `emailId` identify no email, unless the send ' +
      'would be a repeat: then they are those of the earlier email.',
  });

export const sendResult = z
  .union([sendAnswer, dryRunAnswer])
  .meta({ description: 'The answer of a send; with `dryRun=true`, of a dry run.' });

export function presentDryRun(answer: SendAnswerRecord, message: Buffer): z.input<typeof dryRunAnswer> {
  const headers = readHead(message).fields.map(({ label, value }) => ({ name: label, value }));
  return { ...presentSend(answer), dryRun: true, message: { size: message.length, headers } };
}
