/** The reply of a route that rejects: a code of 5xx, an enhanced code of class 5 (RFC 3463), and a text of the owner's. */

export interface RejectReply {
  code: number;
  enhanced: string;
  text: string;
}

/** RFC 5321 section 4.5.3.1.5: a reply line has 512 bytes at most; senders show this in their bounces. */
const maxLength = 200;

export const defaultReply = '550 5.7.1 This address takes no mail';

export const replyForm = `a reply such as "${defaultReply}": a code from 500 to 559, and printable ASCII, at most ${maxLength} characters`;

/** Null if it is not such a reply. A missing enhanced code is 5.7.1: a rule of the recipient. */
export function parseReply(given: string): RejectReply | null {
  if (given.length > maxLength) return null;
  const found = /^(5[0-5]\d) (?:(5\.\d{1,3}\.\d{1,3}) )?([!-~][ -~]*)$/.exec(given.trim());
  return found ? { code: Number(found[1]), enhanced: found[2] ?? '5.7.1', text: found[3]! } : null;
}

export const replyText = ({ code, enhanced, text }: RejectReply) => `${code} ${enhanced} ${text}`;
