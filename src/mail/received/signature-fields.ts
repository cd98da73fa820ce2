/**
 * The signatures of a received mail, DKIM and ARC: which keys they need, and whether checking them is bounded work. mailauth's
 * time grows with the square of a field's lines, with the square of a line's length, and with each other form of the body that
 * is hashed; no honest mail comes near the bounds here.
 */
import type { Head } from '#mail/compose/head.ts';

export interface SignatureFields {
  /** There is a DKIM signature or an ARC set. */
  isSigned: boolean;
  /** They can be checked in bounded time. */
  isBounded: boolean;
  /** The names of the DNS records with their keys, as many as are asked for. */
  keyNames: string[];
}

/** RFC 6376 section 6.1 leaves the number to the verifier. */
const maxSignatures = 10;
/** RFC 8617 section 4.2.1 allows 50 sets. */
const maxArcFields = 2 * 50;
/** Forms of the body: canonicalization, and the length that is signed. */
const maxForms = 3;
const maxLinesOfField = 1000;
const longestLine = 256 * 1024;
/** DNS look-ups for one mail. */
const maxKeyNames = 20;

export function signaturesIn(raw: Buffer, head: Head): SignatureFields {
  const dkim = head.fields.filter(({ name }) => name === 'dkim-signature');
  const arc = head.fields.filter(({ name }) => name === 'arc-message-signature' || name === 'arc-seal');
  const tags = [...dkim, ...arc].map(({ value }) => tagsIn(value));
  const forms = new Set(tags.map((of) => `${of.get('c') ?? ''} ${of.get('a') ?? ''} ${of.get('l') ?? ''}`));
  const names = tags.flatMap((of) => {
    const [selector, domain] = [of.get('s'), of.get('d')];
    return selector && domain ? [`${selector}._domainkey.${domain}`.toLowerCase()] : [];
  });
  const isSigned = tags.length > 0;
  return {
    isSigned,
    isBounded:
      isSigned &&
      !head.isTooLarge &&
      dkim.length <= maxSignatures &&
      arc.length <= maxArcFields &&
      forms.size <= maxForms + (arc.length > 0 ? 1 : 0) &&
      head.fields.every(({ start, end }) => countLines(raw.subarray(start, end)) <= maxLinesOfField) &&
      hasShortLines(raw),
    keyNames: [...new Set(names)].filter((name) => name.length <= 253).slice(0, maxKeyNames),
  };
}

/** RFC 6376 section 3.2. */
function tagsIn(value: string): Map<string, string> {
  return new Map(
    value.split(';', 100).map((tag) => {
      const at = tag.indexOf('=');
      return [tag.slice(0, Math.max(at, 0)).trim().toLowerCase(), tag.slice(at + 1).replace(/\s/g, '')];
    }),
  );
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf('\n'); at >= 0; at = bytes.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

function hasShortLines(raw: Buffer): boolean {
  for (let start = 0; raw.length - start > longestLine; ) {
    const end = raw.lastIndexOf('\n', start + longestLine);
    if (end < start) return false;
    start = end + 1;
  }
  return true;
}
