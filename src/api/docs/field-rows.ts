/**
 * Converts a schema to rows of a table: one for each member at every depth, with its path (`recipients[].mx.host`), type,
 * limits, and whether it is required. If an object has several kinds, distinguished by `type`, a member that only some
 * kinds have lists these kinds.
 */
import type { ComponentSchema } from '../openapi/openapi-types.ts';

export interface Row {
  path: string;
  type: string;
  required: boolean;
  description: string;
  limits: string[];
  /** The kinds of the enclosing object that have this member; null for all. */
  only: string[] | null;
}

export type Schemas = Record<string, ComponentSchema>;

export function rowsOf(schema: ComponentSchema, schemas: Schemas, path = ''): Row[] {
  const { properties = {}, required = [] } = resolved(schema, schemas);
  return Object.entries(properties).flatMap(([name, member]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const row = rowOf(at, member as ComponentSchema, schemas, required.includes(name));
    return [row, ...within(member as ComponentSchema, schemas, at)];
  });
}

function rowOf(path: string, member: ComponentSchema, schemas: Schemas, required: boolean): Row {
  const known = resolved(member, schemas);
  const description = member.description ?? known.description ?? '';
  return { path, type: typeOf(member, schemas), required, description, limits: limitsOf(known), only: null };
}

/** The rows of the members inside an object or inside an array's elements. */
function within(member: ComponentSchema, schemas: Schemas, path: string): Row[] {
  const schema = resolved(member, schemas);
  if (schema.oneOf) return kindsOf(schema.oneOf as ComponentSchema[], schemas, path);
  if (schema.type === 'array') return within(schema.items as ComponentSchema, schemas, `${path}[]`);
  return schema.properties ? rowsOf(schema, schemas, path) : [];
}

function kindsOf(kinds: ComponentSchema[], schemas: Schemas, path: string): Row[] {
  const merged = new Map<string, Row & { only: string[] }>();
  for (const kind of kinds) {
    const { properties } = resolved(kind, schemas);
    const type = String((properties!.type as ComponentSchema).const);
    for (const row of rowsOf(kind, schemas, path)) {
      const known = merged.get(row.path);
      if (known) known.only.push(type);
      else merged.set(row.path, { ...row, only: [type] });
    }
  }
  const types = `${path}.type`;
  return [...merged.values()].map((row) => {
    if (row.path === types) return { ...row, limits: [`one of ${row.only.join(', ')}`], only: null };
    return { ...row, only: row.only.length === kinds.length ? null : row.only };
  });
}

/** Follows references. For a choice between a schema and null, returns the schema. */
function resolved(schema: ComponentSchema, schemas: Schemas): ComponentSchema {
  if (schema.$ref) return resolved(schemas[schema.$ref.split('/').at(-1)!]!, schemas);
  const some = schema.anyOf?.filter((one) => (one as ComponentSchema).type !== 'null') as
    | ComponentSchema[]
    | undefined;
  if (!some || schema.properties || some.length === schema.anyOf!.length) return schema;
  return resolved(some[0]!, schemas);
}

function typeOf(schema: ComponentSchema, schemas: Schemas): string {
  if (schema.$ref) return typeOf(schemas[schema.$ref.split('/').at(-1)!]!, schemas);
  if (schema.anyOf && !schema.properties) {
    return schema.anyOf.map((one) => typeOf(one as ComponentSchema, schemas)).join(' or ');
  }
  if (schema.oneOf) return 'object';
  if (schema.type === 'array') return `array of ${plural(typeOf(schema.items as ComponentSchema, schemas))}`;
  if (schema.type === 'object' && !schema.properties && schema.additionalProperties) {
    return `object of ${plural(typeOf(schema.additionalProperties as ComponentSchema, schemas))}`;
  }
  return [schema.type ?? 'any'].flat().join(' or ');
}

function plural(type: string): string {
  return type.replace(/^\w+/, '$&s');
}

function limitsOf(schema: ComponentSchema): string[] {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum } = schema;
  const listed = schema.anyOf?.find((one) => (one as ComponentSchema).type === 'array') as
    | ComponentSchema
    | undefined;
  return [
    schema.const !== undefined && JSON.stringify(schema.const),
    schema.enum && `one of ${schema.enum.join(', ')}`,
    between(minLength, maxLength, 'characters'),
    between(minItems, maxItems, 'elements'),
    between(minimum || undefined, maximum, ''),
    schema.format && (formats[schema.format] ?? schema.format),
    schema.contentEncoding && String(schema.contentEncoding),
    ...(listed ? limitsOf(listed) : []),
  ].filter((limit) => typeof limit === 'string');
}

const formats: Record<string, string> = {
  'idn-email': 'email address',
  'date-time': 'ISO 8601 time',
  uuid: 'UUID',
};

function between(min: number | undefined, max: number | undefined, unit: string): string | false {
  if (min === undefined && max === undefined) return false;
  const range =
    min === undefined ? `at most ${max}` : max === undefined ? `at least ${min}` : `${min} to ${max}`;
  return `${range} ${max === undefined && min === 1 ? unit.slice(0, -1) : unit}`.trim();
}
