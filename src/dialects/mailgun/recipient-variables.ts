/** Mailgun's recipient variables: with them each recipient gets an email of their own, in which `%recipient.NAME%` is replaced. */
import { createMemberLimit } from '../../api/json-members.ts';
import { compareKey } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';

type Variables = Record<string, unknown>;

/** For 1,000 recipients. */
const maxMembers = 100_000;
/** A few characters of a text could otherwise become gigabytes. */
const maxLength = 2 * 1024 * 1024;

/** By the form in which addresses are compared; null if the field is not given. Of nobody: each recipient has an email, too. */
export function variablesIn(text: string | undefined): Map<string, Variables> | null {
  if (text === undefined || text.trim() === '') return null;
  createMemberLimit({ maxMembers })(Buffer.from(text));
  const given = parsed(text);
  if (given === null || typeof given !== 'object' || Array.isArray(given)) bad('it must be a JSON object');
  const entries = Object.entries(given).map(([address, variables]): [string, Variables] => {
    if (variables === null || typeof variables !== 'object' || Array.isArray(variables))
      bad(`the variables of ${address.slice(0, 100)} must be a JSON object`);
    return [compareKey(address), variables as Variables];
  });
  return new Map(entries);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    bad('it is not JSON');
  }
}

function bad(fault: string): never {
  throw new Refusal('BAD_REQUEST', `recipient-variables: ${fault}.`);
}

type Fill = (address: string, variables: Variables) => string | undefined;

/** Reads a text once for all recipients. What a recipient has no variable for stays as it is. */
export function fillable(text: unknown): Fill {
  if (typeof text !== 'string') return () => undefined;
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
