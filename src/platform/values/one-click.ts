/**
 * Whether bulk mail can be unsubscribed from with one click (RFC 8058). Gmail, Yahoo and Outlook.com demand it of senders of more
 * than 5,000 mails a day, and refuse or file as spam what lacks it. Mail calls itself bulk by List-Id (RFC 2919) or Precedence.
 */

/** The value of a field, by its name in lower case; null or undefined if there is none. */
type FieldValue = (name: string) => string | null | undefined;

export function lacksOneClick(value: FieldValue): boolean {
  const isBulk =
    /\S/.test(value('list-id') ?? '') || /^\s*(?:bulk|list|junk)\b/i.test(value('precedence') ?? '');
  return isBulk && !hasOneClick(value);
}

function hasOneClick(value: FieldValue): boolean {
  return (
    /https:/i.test(value('list-unsubscribe') ?? '') &&
    /^\s*List-Unsubscribe=One-Click\s*$/i.test(value('list-unsubscribe-post') ?? '')
  );
}

/** The same of headers as a call gives them. */
export function headersLackOneClick(headers: Record<string, string>): boolean {
  const names = Object.keys(headers);
  if (names.length === 0) return false;
  return lacksOneClick((wanted) => headers[names.find((name) => name.toLowerCase() === wanted) ?? '']);
}

export const oneClickAdvice =
  'add List-Unsubscribe with an https link, and List-Unsubscribe-Post: List-Unsubscribe=One-Click (RFC 8058)';

/** The words in the mail log and the response. */
export const oneClickWarning = `bulk mail without one-click unsubscribe: ${oneClickAdvice}`;
