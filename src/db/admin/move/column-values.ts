/**
 * Converts a value from SQLite to PostgreSQL by the type of its column there, and gives the text by which both sides are
 * compared, which PostgreSQL and this program compute alike.
 *
 * A value that does not fit its column is an error that names it, with one exception: PostgreSQL cannot store NUL in text, so
 * NUL becomes U+FFFD, as when Postern parses a reply, and the replaced values are counted.
 */
import { hash } from 'node:crypto';

export type Value = string | number | boolean | Buffer | null;

interface Type {
  /** Undefined if it is not a value of this type. */
  read(value: string | number | Buffer): Exclude<Value, null> | undefined;
  /** The text for the comparison; `sql` computes the same in PostgreSQL. */
  text(value: never): string;
  sql(column: string): string;
}

const asText = { text: String, sql: (column: string) => `${column}::text` };

const whole: Type = {
  read: (value) => (Number.isSafeInteger(value) ? (value as number) : undefined),
  ...asText,
};

const text: Type = {
  read: (value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : undefined),
  ...asText,
};

const types: Record<string, Type> = {
  smallint: whole,
  integer: whole,
  bigint: whole,
  text,
  'character varying': text,
  uuid: {
    read: (value) => (typeof value === 'string' ? value.toLowerCase() : undefined),
    ...asText,
  },
  boolean: {
    read: (value) => (value === 0 || value === 1 ? value === 1 : undefined),
    ...asText,
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
  /** PostgreSQL's name of the type. */
  type: string;
}

export const canMove = ({ type }: Column) => Object.hasOwn(types, type);

const typeOf = ({ type }: Column) => types[type]!;

/** Throws if the value does not fit the column. */
export function converted(column: Column, value: string | number | Buffer | null): Value {
  if (value === null) return null;
  const read = typeOf(column).read(value);
  if (read !== undefined) return read;
  const shown = Buffer.isBuffer(value) ? `${value.length} bytes` : JSON.stringify(value).slice(0, 60);
  throw new Error(`${column.name} is ${shown}, which is not a valid ${column.type}`);
}

/** The SHA-256 of a row, in hexadecimal. Each value has its length, so that different rows never have the same text. */
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

/** `rowHash` computed by PostgreSQL. */
export function rowHashSql(columns: readonly Column[]): string {
  const parts = columns.map((column) => {
    const shown = typeOf(column).sql(quoted(column.name));
    return `coalesce(octet_length(${shown}) || ':' || ${shown}, '-')`;
  });
  return `encode(sha256(convert_to(${parts.join(' || ')}, 'UTF8')), 'hex')`;
}
