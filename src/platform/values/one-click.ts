/**
 * Whether bulk mail can be unsubscribed from with one click (RFC 8058). Gmail, Yahoo and Outlook.com demand it of senders of more
 * than 5,000 mails a day, and refuse or file as spam what lacks it. Mail is bulk if it says so, by List-Id (RFC 2919) or
 * Precedence, or if one body goes to many people.
 */

/** The value of a field, by its name in lower case; null or undefined if there is none. */
type FieldValue = (name: string) => string | null | undefined;

/** From as many recipients of one body on, mail is bulk mail. Postmark takes no more in an email. */
export const bulkRecipients = 50;

/** The field that bulk mail lacks: a stream can add List-Unsubscribe, but not to mail that has its own without one click. */
export type LackingField = 'List-Unsubscribe' | 'List-Unsubscribe-Post';

/** Undefined if the mail is not bulk, or lacks nothing. `recipients`: how many people get the body. */
export function lackingField(value: FieldValue, recipients = 1): LackingField | undefined {
  const isBulk =
    recipients >= bulkRecipients ||
    /\S/.test(value('list-id') ?? '') ||
    /^\s*(?:bulk|list|junk)\b/i.test(value('precedence') ?? '');
  if (!isBulk || hasOneClick(value)) return undefined;
  return /\S/.test(value('list-unsubscribe') ?? '') ? 'List-Unsubscribe-Post' : 'List-Unsubscribe';
}

function hasOneClick(value: FieldValue): boolean {
  return (
    /https:/i.test(value('list-unsubscribe') ?? '') &&
    /^\s*List-Unsubscribe=One-Click\s*$/i.test(value('list-unsubscribe-post') ?? '')
  );
}

/** The same of headers as a call gives them. */
export function lackingHeader(
  headers: Record<string, string>,
  recipients?: number,
): LackingField | undefined {
  const names = Object.keys(headers);
  return lackingField(
    (wanted) => headers[names.find((name) => name.toLowerCase() === wanted) ?? ''],
    recipients,
  );
}

export const oneClickAdvice =
  'send it in a stream of the kind subscribed, or add List-Unsubscribe with an https link, and List-Unsubscribe-Post: List-Unsubscribe=One-Click (RFC 8058)';

/** The words in the mail log and the response. */
export const oneClickWarning = `bulk mail without one-click unsubscribe: ${oneClickAdvice}`;
