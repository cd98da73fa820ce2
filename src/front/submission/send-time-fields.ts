/** `X-Postern-Scheduled-At` and `X-Postern-Expires-After`: the members `scheduledAt` and `expiresAfter` of an API send. */
import { z } from 'zod';
import { expiresAfter, scheduledAt } from '#front/api/send/schema.ts';
import type { Field } from '#mail/compose/head.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { SendTimes } from '#platform/values/send-times.ts';

const schema = z.object({
  'x-postern-scheduled-at': scheduledAt.optional(),
  'x-postern-expires-after': z
    .string()
    .regex(/^\d{1,9}$/, 'must be whole seconds')
    .transform(Number)
    .pipe(expiresAfter)
    .optional(),
});

const names: readonly string[] = Object.keys(schema.shape);

export function isSendTime({ name }: Field): boolean {
  return names.includes(name);
}

export function sendTimesOf(fields: Field[]): SendTimes {
  const own = fields.filter(isSendTime);
  const twice = own.find(({ name }, at) => own.findIndex((one) => one.name === name) < at);
  if (twice) throw new Refusal('VALIDATION_ERROR', `${twice.label}: occurs more than once`);
  const parsed = schema.safeParse(Object.fromEntries(own.map(({ name, value }) => [name, value.trim()])));
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw new Refusal('VALIDATION_ERROR', `${path.join('.')}: ${message}`);
  }
  return {
    scheduledAt: parsed.data['x-postern-scheduled-at'],
    expiresAfter: parsed.data['x-postern-expires-after'],
  };
}
