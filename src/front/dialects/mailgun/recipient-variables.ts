/** Mailgun's recipient variables: with them each recipient gets an email of their own, in which `%recipient.NAME%` is replaced. */

import { objectIn } from '#front/dialects/dialect-body.ts';
import { jsonLimits } from '#front/http/body-limits.ts';
import { compareKey } from '#platform/values/address.ts';
import { Refusal } from '#platform/values/refusal.ts';

/** A hundred variables for each of a thousand recipients. */
const ofRecipients = jsonLimits({ members: 100_000, lists: { '': 2_000, '*': 1_000 } });

export type Variables = Record<string, unknown>;

/** A few characters of a text could otherwise become gigabytes. */
const maxLength = 2 * 1024 * 1024;

/**
 * Variables by the form in which addresses are compared; null if the field is not given. If it has nobody, each recipient has
 * an email of their own, too.
 */
export function variablesIn(text: string | undefined): Map<string, Variables> | null {
  if (text === undefined || text.trim() === '') return null;
  const entries = Object.entries(objectIn(text, 'recipient-variables', ofRecipients));
  const isVariables = (value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value);
  if (entries.every(([, variables]) => isVariables(variables)))
    return new Map(entries.map(([address, variables]) => [compareKey(address), variables as Variables]));
  throw new Refusal(
    'BAD_REQUEST',
    'recipient-variables: the variables of each address must be a JSON object.',
  );
}

type Fill = (address: string, variables: Variables) => unknown;

/** Reads texts, and the members of objects, once for all recipients. What a recipient has no variable for stays as it is. */
export function fillable(value: unknown): Fill {
  if (typeof value === 'string') return fillableText(value);
  if (value === null || typeof value !== 'object') return () => value;
  const members = Object.entries(value).map(([name, member]) => ({ name, fill: fillable(member) }));
  return (address, variables) =>
    Object.fromEntries(members.map(({ name, fill }) => [name, fill(address, variables)]));
}

function fillableText(text: string): Fill {
  // Too long already: the rules of sending refuse it.
  if (text.length > maxLength) return () => text;
  const parts = text.split(/%recipient(?:\.([^%\r\n]{1,100}))?%/);
  if (parts.length === 1) return () => text;
  return (address, variables) => {
    let filled = '';
    for (const [index, part] of parts.entries()) {
      filled += index % 2 === 0 ? part : textOf(part, address, variables);
      if (filled.length > maxLength)
        throw new Refusal('BAD_REQUEST', `With the variables of ${address}, a text is larger than 2 MiB.`);
    }
    return filled;
  };
}

function textOf(name: string | undefined, address: string, variables: Variables): string {
  if (name === undefined) return address;
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (value === undefined) return `%recipient.${name}%`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
