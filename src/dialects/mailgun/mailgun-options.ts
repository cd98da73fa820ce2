/** Mailgun's options that are fields of a message's header, `X-Mailgun-…`: the same as the fields of a form. */
import { decodeWords } from 'postal-mime';
import { Refusal } from '../../mail/refusal.ts';
import type { Form } from '../form.ts';

type Field = [name: string, value: string];

const prefix = 'x-mailgun-';

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
  return name.toLowerCase().startsWith(prefix);
}

/** The form with these options. Its own fields win; of tags, all count. */
export function withOptions(form: Form, header: Field[]): Form {
  return form.after(
    header
      .filter(([name]) => isOption(name))
      .flatMap(([name, value]) => fieldsOf(name.slice(prefix.length).toLowerCase(), decodeWords(value))),
  );
}

/** Options that Postern has no use for, such as X-Mailgun-Sending-Ip, are left out. */
function fieldsOf(name: string, value: string): Field[] {
  if (name === 'variables') return variablesIn(value);
  const field = options[name];
  return field === undefined ? [] : [[field, value]];
}

function variablesIn(text: string): Field[] {
  const variables = parsed(text);
  if (variables === null || typeof variables !== 'object' || Array.isArray(variables))
    throw new Refusal('BAD_REQUEST', 'X-Mailgun-Variables: must be a JSON object.');
  return Object.entries(variables).map(([name, value]) => [
    `v:${name}`,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
