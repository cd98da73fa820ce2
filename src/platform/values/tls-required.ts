/** The header field TLS-Required (RFC 8689 section 5). Its only value is No. */

export const tlsRequiredField = 'tls-required';

export function isTlsNotRequired(value: string): boolean {
  return value.trim().toLowerCase() === 'no';
}
