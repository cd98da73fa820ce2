/** `X-Postern-Stream`: the member `stream` of an API send. */
import { streamName } from '#front/api/streams/schema.ts';
import type { Field } from '#mail/compose/head.ts';
import { Refusal } from '#platform/values/refusal.ts';

export function isStream({ name }: Field): boolean {
  return name === 'x-postern-stream';
}

/** Undefined: the key's. */
export function streamOf(fields: Field[]): string | undefined {
  const [field, twice] = fields.filter(isStream);
  if (!field) return undefined;
  const parsed = streamName.safeParse(field.value.trim());
  if (parsed.success && !twice) return parsed.data;
  const problem = twice ? 'occurs more than once' : parsed.error!.issues[0]!.message;
  throw new Refusal('VALIDATION_ERROR', `${field.label}: ${problem}`);
}
