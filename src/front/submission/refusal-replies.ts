/**
 * Refusals as SMTP replies: the codes of RFC 5321 and RFC 3463, then the error code of docs/api.md at the start of the text.
 * A client retries by itself after 4xx and reports 5xx, so every temporary refusal is 4xx and says when to retry.
 */
import { seconds } from '#front/http/rate-headers.ts';
import { SmtpRefusal } from '#platform/values/mail-handler.ts';
import type { Refusal, RefusalCode } from '#platform/values/refusal.ts';

const codes: Record<RefusalCode, [code: number, enhanced: string]> = {
  VALIDATION_ERROR: [554, '5.6.0'],
  BAD_REQUEST: [554, '5.6.0'],
  UNAUTHORIZED: [535, '5.7.8'],
  INSUFFICIENT_CREDITS: [550, '5.7.1'],
  FORBIDDEN: [550, '5.7.1'],
  DOMAIN_NOT_ALLOWED: [550, '5.7.1'],
  DOMAIN_NOT_FOUND: [550, '5.7.1'],
  DOMAIN_NOT_VERIFIED: [550, '5.7.1'],
  NOT_FOUND: [554, '5.5.0'],
  ALL_RECIPIENTS_SUPPRESSED: [550, '5.7.1'],
  RATE_LIMIT_EXCEEDED: [451, '4.7.1'],
  SEND_FAILED: [451, '4.3.0'],
};

/** RFC 5321 section 4.5.3.1.5: a reply line has 512 bytes. */
const longestText = 400;

export function replyOf(refusal: Refusal): SmtpRefusal {
  const { code, message, retryAfterMs } = refusal;
  const saysWhen = retryAfterMs === null || message.includes('Retry in');
  const wait = saysWhen ? '' : ` Retry in ${seconds(retryAfterMs)} s.`;
  const available = longestText - code.length - wait.length;
  const text = `${code}: ${printable(message).slice(0, available)}${wait}`;
  return new SmtpRefusal(...codes[code], text, { cause: refusal });
}

/** Replies are ASCII (RFC 5321 section 4.2). */
export function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, '?');
}
