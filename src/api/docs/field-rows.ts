/**
 * A schema as rows of a table: one for each member in all depths, with its path (`recipients[].mx.host`), its type,
 * whether it is required, what limits it. Where there are several kinds of an object, told apart by their `type`, a
 * member that not all of them have says which do.
 */
import type { Schema } from '../openapi/component-schemas.ts';

export interface Row {
  path: string;
  type: string;
  required: boolean;
  description: string;
  limits: string[];
  /** The kinds of the object around that have this member; null: all. */
  only: string[] | null;
}

export type Schemas = Record<string, Schema>;

export function rowsOf(schema: Schema, schemas: Schemas, path = ''): Row[] {
  const { properties = {}, required = [] } = resolved(schema, schemas);
  return Object.entries(properties).flatMap(([name, member]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const row = rowOf(at, member as Schema, schemas, required.includes(name));
    return [row, ...within(member as Schema, schemas, at)];
  });
}

function rowOf(path: string, member: Schema, schemas: Schemas, required: boolean): Row {
  const known = resolved(member, schemas);
  const description = member.description ?? known.description ?? '';
  return { path, type: typeOf(member, schemas), required, description, limits: limitsOf(known), only: null };
}

/** The rows of what is inside a member: of an object, of an array's elements. */
function within(member: Schema, schemas: Schemas, path: string): Row[] {
  const schema = resolved(member, schemas);
  if (schema.oneOf) return kindsOf(schema.oneOf as Schema[], schemas, path);
  if (schema.type === 'array') return within(schema.items as Schema, schemas, `${path}[]`);
  return schema.properties ? rowsOf(schema, schemas, path) : [];
}

function kindsOf(kinds: Schema[], schemas: Schemas, path: string): Row[] {
  const merged = new Map<string, Row & { only: string[] }>();
  for (const kind of kinds) {
    const { properties } = resolved(kind, schemas);
    const type = String((properties!.type as Schema).const);
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

/** Through a reference; of a choice between a schema and null, the schema. */
function resolved(schema: Schema, schemas: Schemas): Schema {
  if (schema.$ref) return resolved(schemas[schema.$ref.split('/').at(-1)!]!, schemas);
  const some = schema.anyOf?.filter((one) => (one as Schema).type !== 'null') as Schema[] | undefined;
  if (!some || schema.properties || some.length === schema.anyOf!.length) return schema;
  return resolved(some[0]!, schemas);
}

function typeOf(schema: Schema, schemas: Schemas): string {
  if (schema.$ref) return typeOf(schemas[schema.$ref.split('/').at(-1)!]!, schemas);
  if (schema.anyOf && !schema.properties) {
    return schema.anyOf.map((one) => typeOf(one as Schema, schemas)).join(' or ');
  }
  if (schema.oneOf) return 'object';
  if (schema.type === 'array') return `array of ${plural(typeOf(schema.items as Schema, schemas))}`;
  if (schema.type === 'object' && !schema.properties && schema.additionalProperties) {
    return `object of ${plural(typeOf(schema.additionalProperties as Schema, schemas))}`;
  }
  return [schema.type ?? 'any'].flat().join(' or ');
}

function plural(type: string): string {
  return type.replace(/^\w+/, '$&s');
}

function limitsOf(schema: Schema): string[] {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum } = schema;
  const listed = schema.anyOf?.find((one) => (one as Schema).type === 'array') as Schema | undefined;
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

function between(least: number | undefined, most: number | undefined, unit: string): string | false {
  if (least === undefined && most === undefined) return false;
  const range =
    least === undefined
      ? `at most ${most}`
      : most === undefined
        ? `at least ${least}`
        : `${least} to ${most}`;
  return `${range} ${most === undefined && least === 1 ? unit.slice(0, -1) : unit}`.trim();
}
