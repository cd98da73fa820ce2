/**
 * Answers to earlier sends, by the caller's idempotency key or by the hash of the automatic duplicate window
 * (docs/api.md section 4.1, rules 5 and 6). Written in the accepting commit, so an answer is kept exactly if its send is;
 * a refused send keeps nothing, and its key can be used again.
 */
import { isRecent } from '#platform/base/clock.ts';
import { insertOf } from '#platform/database/engine/insert-rows.ts';
import { jsonRows } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inColumn, json, number, records, text, value } from '#platform/database/engine/records.ts';
import type { Send, SendAnswerRecord } from '#platform/database/tables/send-record.ts';

const answers = records({
  orgId: text,
  /** 'key': an idempotency key of the caller's; 'window': the hash of the duplicate window. */
  kind: value<'key' | 'window'>(),
  key: text,
  requestHash: text,
  answer: inColumn('response', json<SendAnswerRecord>()),
  emailId: text,
  at: inColumn('created_at', number),
});

type Kept = ReturnType<typeof answers.read>;

/** The kept answers for a batch of sends, including those that the batch adds. */
export interface EarlierAnswer {
  get(send: Send): Kept | undefined;
  set(send: Send, answer: SendAnswerRecord): void;
  save(trx: Trx): Promise<void>;
}

const duplicateWindowMs = 2000;

/**
 * An answer from a time to come, kept by a clock that was ahead, is in no window. A key is different: the caller says that it is
 * the same send, whatever the time.
 */
export function isRepeat({ kind, at }: Kept, { acceptedAt }: Send, keepMs: number): boolean {
  return kind === 'window' ? isRecent(at, acceptedAt, duplicateWindowMs) : acceptedAt - at < keepMs;
}

/** One primary key lookup per row; two separate `in` lists would scan all keys of a day. */
export function readEarlier(trx: Trx, sends: Send[]) {
  const { from, column } = jsonRows(trx, { org_id: 'uuid', kind: 'text', key: 'text' });
  const keys = sends.map(({ orgId, idempotency: { kind, key } }) => ({ org_id: orgId, kind, key }));
  return {
    sql: `select kept.* from ${from} cross join idempotency as kept
     where kept.org_id = ${column('org_id')} and kept.kind = ${column('kind')} and kept.key = ${column('key')}`,
    values: [JSON.stringify(keys)],
    columns: answers.columns,
    resultOf: earlierIn,
  };
}

function earlierIn(rows: object[]): EarlierAnswer {
  const known = new Map<string, Kept>();
  const changed = new Set<string>();
  const nameOf = ({ orgId, kind, key }: Pick<Kept, 'orgId' | 'kind' | 'key'>) => `${orgId} ${kind} ${key}`;
  for (const kept of rows.map(answers.read)) known.set(nameOf(kept), kept);
  return {
    get: ({ orgId, idempotency }) => known.get(nameOf({ orgId, ...idempotency })),
    set({ orgId, idempotency, acceptedAt: at }, answer) {
      const kept = { orgId, ...idempotency, answer, emailId: answer.emailId, at };
      known.set(nameOf(kept), kept);
      changed.add(nameOf(kept));
    },
    async save(saving) {
      if (changed.size === 0) return;
      const rows = Array.from(changed, (name) => answers.write(known.get(name)!));
      const [insert, values] = insertOf(saving, 'idempotency', rows);
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
