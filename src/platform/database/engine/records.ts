/**
 * Records: their type and the conversions from and to a table's rows follow from one list of members. A member's column has
 * the member's name in snake case (`createdAt`: `created_at`), or the name that `inColumn` gives. Columns that the list does
 * not have are left out, so a record never carries a secret by accident.
 */
interface Kind<T> {
  column?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the driver's values have no type
  read(value: any): T;
  write?(value: T): unknown;
}

/** A value as the driver has it. */
export const value = <T>(): Kind<T> => ({ read: (stored) => stored });
export const text = value<string>();
export const number = value<number>();
/** SQLite has 0 and 1. */
export const flag: Kind<boolean> = { read: Boolean };
export const json = <T>(): Kind<T> => ({ read: JSON.parse, write: JSON.stringify });

export function orNull<T>(kind: Kind<T>): Kind<T | null> {
  const { write } = kind;
  return {
    ...kind,
    read: (stored) => (stored === null ? null : kind.read(stored)),
    ...(write && { write: (given: T | null) => (given === null ? null : write(given)) }),
  };
}

export const inColumn = <T>(column: string, kind: Kind<T>): Kind<T> => ({ ...kind, column });

type RecordOf<Members> = { [Name in keyof Members]: Members[Name] extends Kind<infer T> ? T : never };

export function records<Members extends Record<string, Kind<unknown>>>(members: Members) {
  const columns = Object.entries(members).map(([name, kind]) => ({
    name,
    column: kind.column ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    kind,
  }));
  return {
    columns: columns.map(({ column }) => column),
    /** The columns for the SELECT of a join. */
    columnsOf: (table: string) => columns.map(({ column }) => `${table}.${column}`),
    /** Records of some of the members. */
    pick: <Name extends keyof Members & string>(...names: Name[]) =>
      records(Object.fromEntries(names.map((name) => [name, members[name]])) as Pick<Members, Name>),
    // biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
    read(row: any): RecordOf<Members> {
      const record: Record<string, unknown> = {};
      for (const { name, column, kind } of columns) record[name] = kind.read(row[column]);
      return record as RecordOf<Members>;
    },
    /** The columns of the members that are given. */
    write(given: { [Name in keyof Members]?: RecordOf<Members>[Name] | undefined }): object {
      const row: Record<string, unknown> = {};
      for (const { name, column, kind } of columns) {
        const value = given[name];
        if (value !== undefined) row[column] = kind.write ? kind.write(value) : value;
      }
      return row;
    },
  };
}
