/** Mailgun's options that are fields of a message's header, `X-Mailgun-…`: the same as the fields of a form. */
import { decodeWords } from 'postal-mime';
import { objectIn } from '#front/dialects/dialect-body.ts';
import type { Form } from '#front/dialects/form.ts';
import { jsonLimits } from '#front/http/body-limits.ts';
import { Refusal } from '#platform/values/refusal.ts';

/** Together, in characters. */
const longestOptions = 256 * 1024;
const ofVariables = jsonLimits({ members: 1_000 });

type Field = [name: string, value: string];

export const optionPrefix = 'x-mailgun-';

const options: Record<string, string> = {
  tag: 'o:tag',
  track: 'o:tracking',
  'track-opens': 'o:tracking-opens',
  'track-clicks': 'o:tracking-clicks',
  'deliver-by': 'o:deliverytime',
  'drop-message': 'o:testmode',
  'require-tls': 'o:require-tls',
  'template-name': 'template',
  'recipient-variables': 'recipient-variables',
};

export function isOption(name: string): boolean {
  return name.toLowerCase().startsWith(optionPrefix);
}

/** The form with these options. Its own fields win; of tags, all count. */
export function withOptions(form: Form, header: Field[]): Form {
  const given = header.filter(([name]) => isOption(name));
  if (given.reduce((sum, [, value]) => sum + value.length, 0) > longestOptions)
    throw new Refusal('BAD_REQUEST', 'The X-Mailgun-… fields of the header have more than 256 KiB together.');
  return form.after(
    given.flatMap(([name, value]) =>
      fieldsOf(name.slice(optionPrefix.length).toLowerCase(), decodeWords(value)),
    ),
  );
}

/** Options that Postern has no use for, such as X-Mailgun-Sending-Ip, are left out. */
function fieldsOf(name: string, value: string): Field[] {
  const field = options[name];
  if (field !== undefined) return [[field, value]];
  if (name !== 'variables') return [];
  return Object.entries(objectIn(value, 'X-Mailgun-Variables', ofVariables)).map(([variable, given]) => [
    `v:${variable}`,
    typeof given === 'string' ? given : JSON.stringify(given),
  ]);
}
