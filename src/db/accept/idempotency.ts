/**
 * Answers to earlier sends, by the caller's idempotency key or by the hash of the automatic duplicate window
 * (docs/api.md section 4.1, rules 5 and 6). Written in the accepting commit, so an answer is kept exactly if its send is;
 * a refused send keeps nothing, and its key can be used again.
 */
import { insertOf } from '../engine/insert-rows.ts';
import { jsonRows } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import type { Read } from '../engine/read-together.ts';
import type { Send, SendAnswerRecord } from './send-record.ts';

interface Kept {
  kind: 'key' | 'window';
  requestHash: string;
  answer: SendAnswerRecord;
  at: number;
}

/** The kept answers for a batch of sends, including those that the batch adds. */
export interface EarlierAnswer {
  get(send: Send): Kept | undefined;
  set(send: Send, answer: SendAnswerRecord): void;
  save(trx: Trx): Promise<void>;
}

const duplicateWindowMs = 2000;

export function isRepeat(before: Kept, send: Send, keepMs: number): boolean {
  const age = send.acceptedAt - before.at;
  return age < (before.kind === 'window' ? duplicateWindowMs : keepMs);
}

/** One primary key lookup per row; two separate `in` lists would scan all keys of a day. */
export function readEarlier(trx: Trx, sends: Send[]): Read<Row, EarlierAnswer> {
  const { from, column } = jsonRows(trx, { org_id: 'uuid', kind: 'text', key: 'text' });
  const keys = sends.map(({ orgId, idempotency: { kind, key } }) => ({ org_id: orgId, kind, key }));
  return {
    sql: `select kept.* from ${from} cross join idempotency as kept
     where kept.org_id = ${column('org_id')} and kept.kind = ${column('kind')} and kept.key = ${column('key')}`,
    values: [JSON.stringify(keys)],
    columns: ['org_id', 'kind', 'key', 'request_hash', 'response', 'created_at'],
    resultOf: earlierIn,
  };
}

function earlierIn(rows: Row[]): EarlierAnswer {
  const known = new Map<string, Kept>();
  const changed: Send[] = [];
  for (const row of rows) {
    known.set(`${row.org_id} ${row.kind} ${row.key}`, {
      kind: row.kind,
      requestHash: row.request_hash,
      answer: JSON.parse(row.response),
      at: row.created_at,
    });
  }
  const name = ({ orgId, idempotency: { kind, key } }: Send) => `${orgId} ${kind} ${key}`;
  return {
    get: (send) => known.get(name(send)),
    set(send, answer) {
      const { kind, requestHash } = send.idempotency;
      known.set(name(send), { kind, requestHash, answer, at: send.acceptedAt });
      changed.push(send);
    },
    async save(saving) {
      const rows = new Map(changed.map((send) => [name(send), rowOf(send, known.get(name(send))!)]));
      if (rows.size === 0) return;
      const [insert, values] = insertOf(saving, 'idempotency', [...rows.values()]);
      await saving.raw(
        `${insert} where true on conflict (org_id, kind, key) do update set ${replaced}`,
        values,
      );
    },
  };
}

/** The `where true` before `on conflict`: without it, SQLite parses `on` after a table as the condition of a join. */
const replaced = ['request_hash', 'response', 'email_id', 'created_at']
  .map((column) => `${column} = excluded.${column}`)
  .join(', ');

interface Row {
  org_id: string;
  kind: 'key' | 'window';
  key: string;
  request_hash: string;
  response: string;
  created_at: number;
}

function rowOf(send: Send, { requestHash, answer, at }: Kept): object {
  return {
    org_id: send.orgId,
    kind: send.idempotency.kind,
    key: send.idempotency.key,
    request_hash: requestHash,
    response: JSON.stringify(answer),
    email_id: answer.emailId,
    created_at: at,
  };
}

const maxForgotten = 500;

/** Deletes expired answers, a bounded number per call; returns how many. */
export async function forgetAnswers(db: Db, now: number, keepMs: number): Promise<number> {
  return (
    (await forget(db, 'window', now - duplicateWindowMs)) +
    (await forget(db, 'key', now - Math.max(keepMs, duplicateWindowMs)))
  );
}

/** Deletes rows by their time, which several may share. A row that was reused meanwhile has a new time, so it stays. */
async function forget(db: Db, kind: Kept['kind'], before: number): Promise<number> {
  const oldest = await db('idempotency')
    .where({ kind })
    .where('created_at', '<', before)
    .orderBy('created_at')
    .limit(maxForgotten)
    .pluck('created_at');
  if (oldest.length === 0) return 0;
  return db('idempotency').where({ kind }).where('created_at', '<=', oldest.at(-1)).delete();
}
