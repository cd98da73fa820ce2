/**
 * Says what is packed of an attempt (platform/database/engine/packed-json.ts), in which table, and how a row is read: one from
 * before 0.9 has it in columns of its own.
 *
 *   attempts     outcome, reply, MX, TLS and the transcript
 *   deliveries   reply, MX and TLS of the last attempt, if the state is final
 *   events       the same of the event's attempt, as the members `response`, `mx` and `tls` that follow `attempt`
 */

import { packJson, unpackJson } from '#platform/database/engine/packed-json.ts';
import type { Attempt, Peer, Reply, TlsUsed, Verdict } from '#platform/values/glossary.ts';

type AttemptDetail = Pick<Attempt, 'verdict' | 'reply' | 'mx' | 'tls' | 'transcript'>;

/** The verdict has the name `outcome` in the record, which the dictionary knows. */
export function packAttempt({ verdict: outcome, reply, mx, tls, transcript }: Attempt): string {
  return packJson({ outcome, reply, mx, tls, transcript });
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export function attemptDetail(row: any): AttemptDetail {
  if (row.packed) {
    const { outcome: verdict, ...rest } = unpackJson(row.packed) as Omit<AttemptDetail, 'verdict'> & {
      outcome: Verdict;
    };
    return { verdict, ...rest };
  }
  return {
    verdict: JSON.parse(row.verdict),
    reply: parsed(row.reply),
    mx: parsed(row.mx),
    tls: parsed(row.tls),
    transcript: JSON.parse(row.transcript),
  };
}

/** Reads rows without their transcripts. */
export function attemptMx({ packed, mx }: { packed: Buffer | null; mx: string | null }): Peer | null {
  return packed ? attemptDetail({ packed }).mx : parsed(mx);
}

export function packResult({ reply, mx, tls }: Attempt): string {
  return packJson([reply, mx, tls]);
}

type Result = [reply: Reply | null, mx: Peer | null, tls: TlsUsed | null];

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export function lastResult(row: any): { lastReply: Reply | null; mx: Peer | null; tls: TlsUsed | null } {
  const [lastReply, mx, tls] = row.packed
    ? (unpackJson(row.packed) as Result)
    : ([parsed(row.last_reply), parsed(row.mx), parsed(row.tls)] as Result);
  return { lastReply, mx, tls };
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export function eventData(row: any): Record<string, unknown> {
  const data = JSON.parse(row.data);
  if (!row.packed) return data;
  const { attempt, ...others } = data;
  const [response, mx, tls] = unpackJson(row.packed) as Result;
  return { attempt, response, mx, tls, ...others };
}

const parsed = (text: string | null) => (text === null ? null : JSON.parse(text));
