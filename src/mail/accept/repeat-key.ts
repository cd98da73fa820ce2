/** Whether a send is a repeat of an earlier one is decided by a key: the caller's idempotency key, or the window of two seconds. */
import { hash } from 'node:crypto';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { Recipient } from '#platform/values/recipients.ts';

interface Repeatable {
  recipients: Recipient[];
  subject: string;
  idempotency: { key: string; requestHash: string } | null;
}

interface RepeatTerms {
  keyId: string | null;
  emailId: string;
  isTest: boolean;
  /** Without an idempotency key, it repeats nothing. */
  isUnique: boolean;
}

/** A test must never answer for a real send that has the same key: test mail has keys of its own, which no caller can give. */
export function repeatKeyOf(request: Repeatable, terms: RepeatTerms): Send['idempotency'] {
  const { idempotency } = request;
  const { emailId, isTest, isUnique } = terms;
  if (idempotency)
    return { ...idempotency, kind: 'key', key: isTest ? `test\n${idempotency.key}` : idempotency.key };
  if (isUnique) return { kind: 'window', key: emailId, requestHash: emailId };
  return { kind: 'window', ...duplicateWindow(request, terms.keyId) };
}

/** Two sends without an idempotency key are duplicates if they have the same `key` here (docs/api.md section 4.1 rule 6). */
function duplicateWindow(request: Repeatable, keyId: string | null): { key: string; requestHash: string } {
  const recipients = request.recipients.map(({ key }) => key).sort();
  const key = hash('sha256', JSON.stringify([keyId, recipients, request.subject]));
  return { key, requestHash: key };
}
