/** A part of a received message, decoded: enough MIME for what our own composer writes. */
export function partOf(raw: Buffer | string, type: 'text/html' | 'text/plain'): string {
  const message = raw.toString('latin1');
  const boundary = /^Content-Type: multipart\/[^;]+;\s+boundary="([^"]+)"/im.exec(message)?.[1];
  const parts = boundary ? message.split(`--${boundary}`) : [message];
  for (const part of parts) {
    const end = part.indexOf('\r\n\r\n');
    const headers = part.slice(0, end);
    if (new RegExp(`^Content-Type: ${type}`, 'im').test(headers))
      return decoded(part.slice(end + 4).replace(/\r\n$/, ''), headers);
  }
  throw new Error(`no ${type} in ${message}`);
}

function decoded(body: string, headers: string): string {
  const encoding = /^Content-Transfer-Encoding: (\S+)/im.exec(headers)?.[1]?.toLowerCase();
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
  if (encoding !== 'quoted-printable') return Buffer.from(body, 'latin1').toString();
  const bytes = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
