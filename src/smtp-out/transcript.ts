/**
 * The dialogue of one attempt as evidence: what each side said and when. Message bytes are not in it, only their
 * count. Bounded: a host that talks without end fills it up to a limit and no further.
 */
import type { TranscriptLine } from '../glossary.ts';
import { printableReply } from './reply.ts';

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
