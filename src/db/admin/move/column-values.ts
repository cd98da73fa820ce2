/**
 * One value on its way from SQLite to PostgreSQL, by the type that its column has there; and the form in which the two
 * sides are compared, the same whichever computes it.
 *
 * A value that its column does not take is refused by name, never bent; with one exception. PostgreSQL stores no NUL in
 * text, and SQLite does: such characters become U+FFFD, as they do where Postern takes a reply apart, and are told.
 */
import { hash } from 'node:crypto';

export type Value = string | number | boolean | Buffer | null;

interface Type {
  /** Undefined: it is not a value of this type. */
  read(value: string | number | Buffer): Exclude<Value, null> | undefined;
  /** What is compared, as text; `sql`: the same computed by PostgreSQL. */
  text(value: never): string;
  sql(column: string): string;
}

const whole: Type = {
  read: (value) => (Number.isSafeInteger(value) ? (value as number) : undefined),
  text: String,
  sql: (column) => `${column}::text`,
};

const text: Type = {
  read: (value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : undefined),
  text: (value: string) => value,
  sql: (column) => `${column}::text`,
};

const types: Record<string, Type> = {
  smallint: whole,
  integer: whole,
  bigint: whole,
  text,
  'character varying': text,
  uuid: {
    read: (value) => (typeof value === 'string' ? value.toLowerCase() : undefined),
    text: (value: string) => value,
    sql: (column) => `${column}::text`,
  },
  boolean: {
    read: (value) => (value === 0 || value === 1 ? value === 1 : undefined),
    text: String,
    sql: (column) => `${column}::text`,
  },
  'double precision': {
    read: (value) => (typeof value === 'number' ? value : undefined),
    text(value: number) {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return bytes.toString('hex');
    },
    sql: (column) => `encode(float8send(${column}), 'hex')`,
  },
  bytea: {
    read: (value) => (typeof value === 'number' ? undefined : Buffer.from(value as Buffer)),
    text: (value: Buffer) => hash('sha256', value, 'hex'),
    sql: (column) => `encode(sha256(${column}), 'hex')`,
  },
};

export interface Column {
  name: string;
  /** As PostgreSQL calls it. */
  type: string;
}

export const canMove = ({ type }: Column) => Object.hasOwn(types, type);

const typeOf = ({ type }: Column) => types[type]!;

/** As PostgreSQL takes it. */
export function converted(column: Column, value: string | number | Buffer | null): Value {
  if (value === null) return null;
  const read = typeOf(column).read(value);
  if (read !== undefined) return read;
  const shown = Buffer.isBuffer(value) ? `${value.length} bytes` : JSON.stringify(value).slice(0, 60);
  throw new Error(`${column.name} is ${shown}, which is no ${column.type}`);
}

/** The SHA-256 of a row, in hexadecimal: each value with its length, so that no two rows read the same. */
export function rowHash(columns: readonly Column[], values: readonly Value[]): string {
  const parts = columns.map((column, at) => {
    const value = values[at]!;
    if (value === null) return '-';
    const shown = typeOf(column).text(value as never);
    return `${Buffer.byteLength(shown)}:${shown}`;
  });
  return hash('sha256', parts.join(''), 'hex');
}

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** The same, computed by PostgreSQL. */
export function rowHashSql(columns: readonly Column[]): string {
  const parts = columns.map((column) => {
    const shown = typeOf(column).sql(quoted(column.name));
    return `coalesce(octet_length(${shown}) || ':' || ${shown}, '-')`;
  });
  return `encode(sha256(convert_to(${parts.join(' || ')}, 'UTF8')), 'hex')`;
}
