/** `dryRun=true`: what a send would do, without doing it. */
import type { Context } from 'koa';
import { z } from 'zod';
import { closestName } from '../../base/closest-name.ts';
import { readHead } from '../../compose/head.ts';
import type { SendAnswerRecord } from '../../db/accept/send-record.ts';
import { Refusal } from '../../mail/refusal.ts';
import { readQuery } from '../query.ts';
import { listsOf, recipientLists, sendAnswer } from './send-response.ts';

export const sendQuery = z.object({
  dryRun: z.enum(['true', 'false'], { error: 'must be true or false' }).optional().meta({
    description:
      '`true`: run every check and compose the message, but charge, store and send nothing. The call counts as a request.',
  }),
});

export function isDryRun(context: Context): boolean {
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

export const dryRunAnswer = z
  .object({
    success: z.literal(true),
    dryRun: z.literal(true),
    ...recipientLists,
    message: z
      .object({
        size: z.int().meta({ description: 'In octets, as it would be sent.' }),
        headers: z
          .array(z.object({ name: z.string(), value: z.string() }))
          .meta({ description: 'In the order of the message, unfolded; at most the first 500, or 100 KiB.' }),
      })
      .meta({
        description: 'The composed and signed message; with tracking, the copy of the first recipient.',
      }),
  })
  .meta({ description: 'What the send would do now. Nothing was charged, stored or sent.' });

export const sendResult = z
  .union([sendAnswer, dryRunAnswer])
  .meta({ description: 'The answer of a send; with `dryRun=true`, of a dry run.' });

export function presentDryRun(answer: SendAnswerRecord, message: Buffer): z.input<typeof dryRunAnswer> {
  const headers = readHead(message).fields.map(({ label, value }) => ({ name: label, value }));
  return {
    success: true,
    dryRun: true,
    ...listsOf(answer),
    message: { size: message.length, headers },
  };
}
