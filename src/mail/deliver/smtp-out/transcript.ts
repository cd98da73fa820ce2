/**
 * The dialogue of one attempt, with times, as evidence for the operator. It contains the size of the message instead of
 * its bytes. The number and length of its lines are limited.
 */
import type { TranscriptLine } from '#platform/values/glossary.ts';
import { printableReply } from '#platform/values/reply.ts';

const maxLines = 400;
const longestText = 2000;

export interface Transcript {
  readonly lines: TranscriptLine[];
  add(from: TranscriptLine['from'], text: string): void;
}

/** `now` is called for each line; times are kept relative to the first call. */
export function createTranscript(now: () => number): Transcript {
  const start = now();
  const lines: TranscriptLine[] = [];
  return {
    lines,
    add(from, text) {
      if (lines.length >= maxLines) return;
      const kept = text.length > longestText ? `${text.slice(0, longestText)}…` : text;
      lines.push({ ms: Math.round(now() - start), from, text: printableReply(kept) });
    },
  };
}
