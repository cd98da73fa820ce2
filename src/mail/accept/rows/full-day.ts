/** Whether a send fits in the day of its organization, and in that of its stream. */
import { type RequestCount, untilMidnight } from '#accounts/limits.ts';
import type { Organization } from '#accounts/rows/organizations.ts';
import { type StreamUse, streamUseKey } from '#accounts/rows/streams.ts';
import type { Send } from '#platform/database/tables/send-record.ts';

export interface DayUses {
  /** Keyed by organization: recipients accepted today before this batch and in it, and requests that it refused. */
  days: Map<string, { orgId: string; day: string; before: number; emails: number; refused: RequestCount }>;
  /** Of streams that have a limit, by `streamUseKey`; `emails`: before this batch and in it. */
  streamUses: Map<string, StreamUse>;
}

/** `stream`: its limit is reached, and not the organization's. */
export interface DayRefusal {
  refused: 'DAILY_CAPACITY';
  limit: number;
  retryAfterMs: number;
  stream?: string;
}

/** The refusal of a send that does not fit in the organization's day, or in that of its stream. */
export function fullDay(
  send: Send,
  { emailsPerDay }: Organization,
  uses: DayUses,
  wanted: number,
): DayRefusal | null {
  const today = uses.days.get(send.orgId)!;
  const ofStream = streamUseOf(send, uses);
  const isOver = emailsPerDay !== null && today.before + today.emails + wanted > emailsPerDay;
  const isStreamOver = ofStream !== undefined && ofStream.emails + wanted > send.streamLimit!;
  if (!isOver && !isStreamOver) return null;
  today.refused.day += 1;
  // A batch is one call of the second, which it keeps.
  if (!send.isInBatch) today.refused.second += 1;
  const refused = { refused: 'DAILY_CAPACITY' as const, retryAfterMs: untilMidnight(send.acceptedAt) };
  return isOver
    ? { ...refused, limit: emailsPerDay }
    : { ...refused, limit: send.streamLimit!, stream: send.stream! };
}

const hasLimit = (stream: string | null | undefined, limit: number | null | undefined) =>
  stream != null && limit != null;

/** Undefined for mail without a stream, or of one without a limit. */
export function streamUseOf(
  { orgId, stream, streamLimit }: Send,
  { streamUses }: DayUses,
): StreamUse | undefined {
  return hasLimit(stream, streamLimit) ? streamUses.get(streamUseKey({ orgId, stream: stream! })) : undefined;
}
