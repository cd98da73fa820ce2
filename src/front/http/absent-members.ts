/**
 * `null` for an optional member that cannot be null means that it was not given: many programs write it for what is unset.
 */
import { z } from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The members of an object, or those of each element of an array. */
interface Known {
  /** The members that can be left out, and not be null. */
  optional: Set<string>;
  members: Map<string, Known>;
  element: Known | null;
}

const kept = new WeakMap<z.ZodType, Known>();

/** The value without such members; the value itself if it has none. */
export function withoutNulls(schema: z.ZodType, value: unknown): unknown {
  let known = kept.get(schema);
  if (!known) {
    known = knownIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
    kept.set(schema, known);
  }
  return cleaned(value, known);
}

function alternativesOf(schema: JsonSchema): JsonSchema[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])] as JsonSchema[];
  return [schema, ...inner.flatMap(alternativesOf)];
}

function knownIn(schema: JsonSchema): Known {
  const alternatives = alternativesOf(schema);
  const required = new Set(alternatives.flatMap((one) => (one.properties && one.required) || []));
  const properties = alternatives.flatMap((one) => Object.entries(one.properties ?? {})) as [
    string,
    JsonSchema,
  ][];
  const items = alternatives.map((one) => one.items as JsonSchema | undefined).find((one) => one);
  return {
    optional: new Set(
      properties.flatMap(([name, one]) => (required.has(name) || canBeNull(one) ? [] : [name])),
    ),
    members: new Map(properties.map(([name, property]) => [name, knownIn(property)])),
    element: items ? knownIn(items) : null,
  };
}

function canBeNull(schema: JsonSchema): boolean {
  return alternativesOf(schema).some(
    ({ type }) => type === 'null' || (Array.isArray(type) && type.includes('null')),
  );
}

function cleaned(value: unknown, known: Known): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? cleanedList(value, known)
    : cleanedObject(value as Record<string, unknown>, known);
}

function cleanedList(list: unknown[], { element }: Known): unknown[] {
  if (!element || element.members.size === 0) return list;
  const cleanedOnes = list.map((one) => cleaned(one, element));
  return cleanedOnes.some((one, index) => one !== list[index]) ? cleanedOnes : list;
}

function cleanedObject(object: Record<string, unknown>, { optional, members }: Known): object {
  const isAbsent = (name: string) => object[name] === null && optional.has(name);
  const own = (name: string) => {
    const known = members.get(name);
    return known ? cleaned(object[name], known) : object[name];
  };
  const names = Object.keys(object);
  // Almost all are clean, and each request has some.
  if (names.every((name) => !isAbsent(name) && own(name) === object[name])) return object;
  return Object.fromEntries(names.filter((name) => !isAbsent(name)).map((name) => [name, own(name)]));
}
