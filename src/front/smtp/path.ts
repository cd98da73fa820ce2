/**
 * Reads the path of MAIL FROM: and RCPT TO: as clients write it: with or without angle brackets, with blanks around it, with a
 * display name before it, with a quoted local part, or with a source route, which is ignored (RFC 5321 appendix C). The
 * caller checks the address.
 */

import { hasHidden } from '#platform/values/hidden-characters.ts';

export interface Path {
  /** Null if there is none to read. */
  address: string | null;
  /** The parameters that follow it (RFC 5321 section 4.1.2), as written. */
  parameters: string;
}

const unsafe = /\p{Cc}/u;
const parameter = /^[a-z\d][a-z\d-]*(?:=\S*)?$/i;
const sourceRoute = /^@[^\s,:@]+(?:,@[^\s,:@]+)*:/;

export function readPath(text: string): Path {
  const { path, parameters } = split(text.trim());
  return { address: unsafe.test(path) ? null : addressIn(path), parameters };
}

/** As `readPath`; whatever else stands there is the address. */
export function readReversePath(text: string): Path {
  const { path, parameters } = split(text.trim());
  const address = addressIn(path) ?? path;
  return { address: unsafe.test(path) || hasHidden(address) ? null : address, parameters };
}

/** Parameters are the last words, because a path can contain blanks. The first word is never one. */
function split(text: string): { path: string; parameters: string } {
  let end = text.length;
  for (;;) {
    const blank = Math.max(text.lastIndexOf(' ', end - 1), text.lastIndexOf('\t', end - 1));
    if (blank < 1 || !parameter.test(text.slice(blank + 1, end))) break;
    end = text.slice(0, blank).trimEnd().length;
  }
  return { path: text.slice(0, end), parameters: text.slice(end).trim() };
}

function addressIn(path: string): string | null {
  const open = path.lastIndexOf('<');
  const close = path.indexOf('>', open + 1);
  if (open < 0) return close < 0 ? path.replace(sourceRoute, '') : null;
  if (close < 0 || path.indexOf('>') < close || /[^>\s]/.test(path.slice(close))) return null;
  return path
    .slice(open + 1, close)
    .trim()
    .replace(sourceRoute, '');
}
