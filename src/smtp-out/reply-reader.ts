/**
 * Whole replies out of the bytes of a host: RFC 5321 section 4.2. Lines may end in LF alone; empty ones are no replies.
 *
 * Bounded: a host that sends too much before a reply is complete is not speaking SMTP.
 */

const maxUnreadReplies = 64 * 1024;

export interface ReplyReader {
  /** False if the host has sent too much. */
  push(chunk: Buffer): boolean;
  /** The next whole reply, its lines joined by \n. */
  next(): string | null;
  /** How many replies, whole or begun, have come and were not read yet. */
  readonly unread: number;
  /** Takes away what was begun and not ended. */
  takeRest(): string;
  /** Discards everything unread; returns its length without line ends. */
  clear(): number;
}

export function createReplyReader(): ReplyReader {
  // Bytes, one a character, until a reply is whole: a character in UTF-8 may come in two pieces.
  const replies: string[] = [];
  let begun = '';
  let line = '';
  let unreadBytes = 0;

  function onLine(text: string): void {
    if (begun === '' && text.trim() === '') return;
    begun = begun === '' ? text : `${begun}\n${text}`;
    if (/^\d+-/.test(text)) return;
    replies.push(begun);
    begun = '';
  }

  return {
    push(chunk) {
      unreadBytes += chunk.length;
      if (unreadBytes > maxUnreadReplies) return false;
      const text = chunk.toString('latin1');
      let from = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
        onLine((line + text.slice(from, end)).replace(/\r$/, ''));
        line = '';
        from = end + 1;
      }
      line += text.slice(from);
      return true;
    },
    next() {
      const reply = replies.shift();
      if (reply === undefined) return null;
      unreadBytes = 0;
      return decoded(reply);
    },
    get unread() {
      return replies.length + (begun !== '' || line.trim() !== '' ? 1 : 0);
    },
    takeRest() {
      const rest = [begun, line].join('\n').trim();
      begun = '';
      line = '';
      return decoded(rest);
    },
    clear() {
      const bytes = [...replies, begun, line].join('').length;
      replies.length = 0;
      begun = '';
      line = '';
      unreadBytes = 0;
      return bytes;
    },
  };
}

/** Replies have no charset. Where the bytes are UTF-8 they are read so, else one by one. */
function decoded(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes;
  const text = Buffer.from(bytes, 'latin1').toString();
  return text.includes('\ufffd') ? bytes : text;
}
