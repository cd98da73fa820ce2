/**
 * Members of a send that its schema does not know. They are ignored, as the contract demands, but not silently: the header
 * X-Postern-Ignored and the mail log name them, and a key with the option `strict` gets an issue for each.
 */
import { z } from 'zod';
import { typeOf } from '#front/http/issues.ts';
import { closestName } from '#platform/base/closest-name.ts';
import type { Issue } from '#platform/values/refusal.ts';
import { sendSchema } from './schema.ts';

export interface UnknownMember {
  /** The member's name is the last step; all are cut. */
  path: string[];
  type: string;
  /** The known names beside it. */
  known: string[];
}

/** More would not help a person to correct the request. */
const maxFound = 100;
const maxNamed = 10;
const maxNameLength = 64;

/** The known members inside a value: the members of an object, or of each element of an array. */
interface Known {
  members: Map<string, Known>;
  element: Known | null;
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** An object that takes any members, such as tags, has no properties. */
function knownIn(schema: JsonSchema): Known {
  const alternatives = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])] as JsonSchema[];
  const properties = alternatives.flatMap((one) => Object.entries(one.properties ?? {}));
  const items = alternatives.map((one) => one.items as JsonSchema | undefined).find((one) => one);
  return {
    members: new Map(properties.map(([name, property]) => [name, knownIn(property as JsonSchema)])),
    element: items ? knownIn(items) : null,
  };
}

const inSend = knownIn(z.toJSONSchema(sendSchema, { io: 'input' }));

/** At most `maxFound`. `at` is the path of the send in the body. */
export function unknownMembers(send: unknown, at: string[] = []): UnknownMember[] {
  const found: UnknownMember[] = [];
  collect(send, inSend, at, found);
  return found;
}

function collect(value: unknown, { members, element }: Known, path: string[], found: UnknownMember[]): void {
  if (typeof value !== 'object' || value === null || found.length >= maxFound) return;
  if (Array.isArray(value)) {
    if (!element || (element.members.size === 0 && !element.element)) return;
    for (const [index, one] of value.entries()) collect(one, element, [...path, String(index)], found);
    return;
  }
  if (members.size === 0) return;
  for (const [name, inner] of Object.entries(value)) {
    const known = members.get(name);
    if (known) collect(inner, known, [...path, name], found);
    else if (found.length < maxFound)
      found.push({ path: [...path, cut(name)], type: typeOf(inner), known: [...members.keys()] });
  }
}

function cut(name: string): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength)}...` : name;
}

/** As the header has them. */
export function ignoredNames(unknown: UnknownMember[]): string[] {
  return unknown.map(({ path }) => path.join('.'));
}

/** The text for a line of the mail log; undefined if there are none. */
export function ignoredNote(unknown: UnknownMember[]): string | undefined {
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, maxNamed).map((one) => {
    const meant = meantBy(one);
    return `${one.path.join('.')}${meant === null ? '' : ` (did you mean ${meant}?)`}`;
  });
  return [...names, ...(unknown.length > maxNamed ? ['...'] : [])].join(', ');
}

/** The names that other services give to our members, if the names are not alike. */
const otherNames: Record<string, string> = {
  path: 'url',
  href: 'url',
  name: 'filename',
  data: 'content',
  type: 'contentType',
  cid: 'contentId',
  body: 'text',
  message: 'text',
  send_at: 'scheduledAt',
  metadata: 'tags',
};

function meantBy({ path, known }: UnknownMember): string | null {
  const name = path.at(-1)!;
  const other = Object.hasOwn(otherNames, name) ? otherNames[name]! : null;
  return other !== null && known.includes(other) ? other : closestName(name, known);
}

/** If a member is missing, the message names the unknown ones beside it: one of them is probably meant. */
export function withUnknown(issues: Issue[], unknown: UnknownMember[]): Issue[] {
  return issues.map((issue) => {
    if (issue.received !== 'undefined') return issue;
    const parent = issue.path.slice(0, -1).join('.');
    const beside = unknown.filter(({ path }) => path.slice(0, -1).join('.') === parent);
    const advice = beside.slice(0, maxNamed).flatMap((one) => {
      const meant = meantBy(one);
      return meant === null ? [] : `${one.path.at(-1)} is unknown: did you mean ${meant}?`;
    });
    return advice.length === 0 ? issue : { ...issue, message: `${issue.message}; ${advice.join(' ')}` };
  });
}

/** The refusal for a key with the option `strict`. */
export function unknownIssues(unknown: UnknownMember[]): Issue[] {
  return unknown.map((one) => {
    const meant = meantBy(one);
    const advice = meant === null ? 'this API key is strict' : `did you mean ${meant}?`;
    return {
      code: 'unrecognized_keys',
      expected: meant ?? 'a member that the API names',
      received: one.type,
      path: one.path,
      message: `${one.path.join('.')}: unknown member; ${advice}`,
    };
  });
}
