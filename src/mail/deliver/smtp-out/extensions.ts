/** The extensions that a host offers in its reply to EHLO (RFC 5321 section 4.1.1.1). */
import { printableReply } from '#platform/values/reply.ts';

export interface Extensions {
  has(keyword: string): boolean;
  /** From RFC 1870's SIZE; 0 if the host gave none, or not a number. */
  sizeLimit: number;
  /**
   * How many mails the host takes over one connection, from RFC 9422's LIMITS; infinite if it does not say. Its limits on
   * recipients need no care: every mail of ours has one.
   */
  mailMax: number;
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
  const mailMax = /(?:^| )MAILMAX=([1-9]\d{0,5})(?: |$)/i.exec(offered.get('LIMITS') ?? '')?.[1];
  const size = offered.get('SIZE') ?? '';
  return {
    has: (keyword) => offered.has(keyword),
    sizeLimit: /^\d{1,15}$/.test(size) ? Number(size) : 0,
    mailMax: mailMax ? Number(mailMax) : Number.POSITIVE_INFINITY,
  };
}

/** After HELO. */
export const noExtensions: Extensions = { has: () => false, sizeLimit: 0, mailMax: Number.POSITIVE_INFINITY };
