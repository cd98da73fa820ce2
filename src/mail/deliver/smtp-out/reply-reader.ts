/**
 * Assembles replies from the bytes of a host (RFC 5321 section 4.2). Lines may end with LF alone; empty lines are
 * ignored. A line without a code belongs to the reply that has begun; where none has, the host does not speak SMTP, and
 * neither does a host that sends too much before a reply is complete.
 */
const maxUnreadReplies = 64 * 1024;

export function createReplyReader() {
  // latin1 until a reply is complete, because a UTF-8 character may arrive in two chunks.
  const replies: string[] = [];
  let begun = '';
  let line = '';
  let unreadBytes = 0;

  function onLine(text: string): void {
    if (begun === '' && text.trim() === '') return;
    const isFirst = begun === '';
    begun = isFirst ? text : `${begun}\n${text}`;
    if (isFirst ? /^\d+-/.test(text) : !/^\d{3}(?:\s|$)/.test(text)) return;
    replies.push(begun);
    begun = '';
  }

  return {
    /** False if the host has sent too much. */
    push(chunk: Buffer): boolean {
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
    /** The next whole reply, its lines joined by \n. */
    next(): string | null {
      const reply = replies.shift();
      if (reply === undefined) return null;
      unreadBytes = 0;
      return decoded(reply);
    },
    /** Number of unread replies, including an incomplete one. */
    get unread(): number {
      return replies.length + (begun !== '' || line.trim() !== '' ? 1 : 0);
    },
    /** Removes and returns an incomplete reply. */
    takeRest(): string {
      const rest = [begun, line].join('\n').trim();
      begun = '';
      line = '';
      return decoded(rest);
    },
    /** Discards everything unread; returns its length without line ends. */
    clear(): number {
      const bytes = [...replies, begun, line].join('').length;
      replies.length = 0;
      begun = '';
      line = '';
      unreadBytes = 0;
      return bytes;
    },
  };
}

/** SMTP defines no charset for replies: they are read as UTF-8 if they are valid UTF-8, otherwise as Latin-1. */
function decoded(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes;
  const text = Buffer.from(bytes, 'latin1').toString();
  return text.includes('\ufffd') ? bytes : text;
}
