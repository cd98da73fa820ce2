/** `X-Postern-Tag-NAME: VALUE` sets the tag NAME, with the same rules as the tags of an API send. */
import { decodeWords } from 'postal-mime';
import { tags as schema } from '#front/api/send/schema.ts';
import type { Field } from '#mail/compose/head.ts';
import { Refusal } from '#platform/values/refusal.ts';

const prefix = 'x-postern-tag-';

export function isTag({ name }: Field): boolean {
  return name.startsWith(prefix);
}

export function tagsOf(fields: Field[]): Record<string, string> {
  const pairs = fields
    .filter(isTag)
    .map(({ label, value }): [string, string] => [label.slice(prefix.length), decodeWords(value)]);
  const names = pairs.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new Refusal('VALIDATION_ERROR', `tags: ${twice} occurs more than once`);
  const parsed = schema.safeParse(Object.fromEntries(pairs));
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new Refusal('VALIDATION_ERROR', `${['tags', ...path].join('.')}: ${message}`);
}
