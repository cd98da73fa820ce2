/** Tables of what the fields of a send take and refuse: a test for each sentence of the specification. */
import test from 'ava';
import { isError, isInvalid, isSent } from './answer.ts';
import { someone, type Tenant } from './client.ts';

export type Fields = Record<string, unknown>;

export interface Row {
  /** Runs alone: the server bounds the bytes of the bodies that it is receiving, and a body that waits waits for the clock. */
  isLarge?: true;
  takes?: Fields[];
  /** The path of the one issue, dots between its elements; BAD_REQUEST has none. And the fields that earn it. */
  refuses?: [path: string, fields: Fields][];
}

/** Every row with the same path. */
export const at = (path: string, ...values: Fields[]): [string, Fields][] =>
  values.map((fields) => [path, fields]);

/** Set over the fields of a good send; undefined takes one away. */
export function testRows(prefix: string, rows: Record<string, Row>, tenant: () => Tenant): void {
  for (const [sentence, { isLarge, takes = [], refuses = [] }] of Object.entries(rows)) {
    const add = isLarge ? test.serial : test;
    add(`${prefix}${sentence}`, async (t) => {
      for (const fields of takes)
        isSent(
          t,
          await tenant().send({ to: someone('nowhere.invalid'), ...fields }),
          undefined,
          shown(fields),
        );
      for (const [path, fields] of refuses) {
        const answer = await tenant().send(fields);
        if (path === 'BAD_REQUEST') isError(t, answer, '400 BAD_REQUEST', shown(fields));
        else isInvalid(t, answer, [path], shown(fields));
      }
    });
  }
}

const shown = (fields: object) => JSON.stringify(fields).slice(0, 80);
