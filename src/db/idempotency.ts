/**
 * Answers given before: by the caller's idempotency key, or by the hash that the automatic duplicate window goes by
 * (interface.md section 4.1, rules 5 and 6). Written in the accepting commit, so an answer is kept exactly when its
 * send is; refused sends keep nothing, and their key can be used again.
 */
import type { Send } from './acceptance-rows.ts';
import type { Db, Trx } from './open.ts';

/** What a send was answered. */
export interface Answer {
  id: string;
  emailId: string;
  accepted: string[];
  suppressed: string[];
  insufficientCredit: string[];
}

interface Kept {
  kind: 'key' | 'window';
  requestHash: string;
  answer: Answer;
  at: number;
}

/** What is known of a batch's keys; moves on as its sends are decided. */
export interface Earlier {
  get(send: Send): Kept | undefined;
  set(send: Send, answer: Answer): void;
  save(trx: Trx): Promise<void>;
}

const duplicateWindowMs = 2000;

export function isRepeat(before: Kept, send: Send, keepMs: number): boolean {
  const age = send.acceptedAt - before.at;
  return age < (before.kind === 'window' ? duplicateWindowMs : keepMs);
}

export async function findEarlier(trx: Trx, sends: Send[]): Promise<Earlier> {
  const known = new Map<string, Kept>();
  const changed: Send[] = [];
  if (sends.length > 0) {
    const rows = await trx('idempotency')
      .whereIn('org_id', [...new Set(sends.map(({ orgId }) => orgId))])
      .whereIn('key', [...new Set(sends.map(({ idempotency }) => idempotency.key))]);
    for (const row of rows) {
      known.set(`${row.org_id} ${row.kind} ${row.key}`, {
        kind: row.kind,
        requestHash: row.request_hash,
        answer: JSON.parse(row.response),
        at: row.created_at,
      });
    }
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
      await saving('idempotency')
        .insert([...rows.values()])
        .onConflict(['org_id', 'kind', 'key'])
        .merge();
    },
  };
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

/** Forgets what no longer holds, a bounded number at a time; answers how many. */
export async function forgetAnswers(db: Db, now: number, keepMs: number): Promise<number> {
  const old = db('idempotency')
    .where('created_at', '<', now - duplicateWindowMs)
    .where((either) => either.where({ kind: 'window' }).orWhere('created_at', '<', now - keepMs))
    .orderBy('created_at')
    .limit(1000)
    .select('org_id', 'kind', 'key');
  const rows = await old;
  if (rows.length === 0) return 0;
  await db('idempotency')
    .whereIn(
      ['org_id', 'kind', 'key'],
      rows.map((row) => [row.org_id, row.kind, row.key]),
    )
    .delete();
  return rows.length;
}
