/** The extensions that a host offers in its reply to EHLO (RFC 5321 section 4.1.1.1). */
import { printableReply } from './reply.ts';

export interface Extensions {
  has(keyword: string): boolean;
  /** From RFC 1870's SIZE; 0 if the host gave none, or not a number. */
  sizeLimit: number;
}

/** `text`: the unparsed reply. Its first line is the host's own name. */
export function extensionsOf(text: string): Extensions {
  const offered = new Map<string, string>();
  for (const line of printableReply(text).split('\n').slice(1)) {
    const [keyword, ...parameters] = line
      .slice('250-'.length)
      .trim()
      .split(/[ \t]+/);
    offered.set(keyword!.toUpperCase(), parameters.join(' '));
  }
  const size = offered.get('SIZE') ?? '';
  return {
    has: (keyword) => offered.has(keyword),
    sizeLimit: /^\d{1,15}$/.test(size) ? Number(size) : 0,
  };
}

/** After HELO. */
export const noExtensions: Extensions = { has: () => false, sizeLimit: 0 };
