/**
 * The text with CRLF line ends only. Receivers differ on whether a bare CR ends a line (RFC 5321 section 2.3.8).
 */
export function toCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, '\r\n');
}
