/** What a host offers in its answer to EHLO: RFC 5321 section 4.1.1.1. Keywords are matched whole. */
import { printableReply } from './reply.ts';

export interface Extensions {
  has(keyword: string): boolean;
  /** Of RFC 1870; 0 if the host gave none. Anything but a number counts as none. */
  sizeLimit: number;
}

/** `text`: the reply as it came. Its first line is the host's name for itself, whatever that is. */
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
