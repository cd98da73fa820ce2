/**
 * A text with CRLF line ends alone. A bare CR on the wire is a line end to some receivers and none to others (RFC 5321
 * section 2.3.8).
 */
export function toCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, '\r\n');
}
