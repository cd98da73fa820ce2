/**
 * A DKIM signer that writes any tags, also those that no signature may have (RFC 6376). Mails are texts of one character for each
 * byte, with CRLF.
 */
import { createHash, generateKeyPairSync, sign as signBytes } from 'node:crypto';

export interface Mail {
  fields: string[];
  body: string;
}

/** Tags in place of the default ones; null leaves one out. `more` is written as it is. */
export type Tags = Partial<
  Record<'v' | 'a' | 'b' | 'bh' | 'c' | 'd' | 's' | 'h' | 'l' | 'q' | 't' | 'x' | 'i', string | null>
> & {
  more?: string;
};

const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength });

/** By selector. */
const keys = { rsa: rsa(2048), ed: generateKeyPairSync('ed25519'), weak: rsa(768), other: rsa(1024) };

export type Selector = keyof typeof keys;

/** As a key record has it; that of Ed25519 is the 32 bytes alone (RFC 8463). */
export function publicKey(selector: Selector): string {
  const der = keys[selector].publicKey.export({ type: 'spki', format: 'der' });
  return (selector === 'ed' ? der.subarray(-32) : der).toString('base64');
}

const defaults = { v: '1', a: 'rsa-sha256', c: 'relaxed/relaxed', s: 'rsa', h: 'from:to:subject:date' };

/** The field DKIM-Signature, made with the key of another selector if `by` says so. */
export function signatureOf(
  mail: Mail,
  { more = '', ...given }: Tags,
  domain: string,
  by?: Selector,
): string {
  const tags: Record<string, string | null> = { ...defaults, d: domain, ...given };
  const [algorithm, hash] = (tags.a ?? defaults.a).split('-') as [string, string];
  const [header = 'simple', body = 'simple'] = (tags.c ?? '').split('/');
  const signed = bodyFor(mail.body, body).slice(0, tags.l ? Number(tags.l) : undefined);
  const digest = hash === 'sha1' ? 'sha1' : 'sha256';
  tags.bh ??= given.bh === null ? null : createHash(digest).update(signed, 'latin1').digest('base64');
  const { b: _, ...rest } = tags;
  const written = Object.entries(rest).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${value}`],
  );
  const unsigned = `DKIM-Signature: ${written.join(';\r\n ')}${more};\r\n b=`;
  const input = [...picked(mail.fields, tags.h ?? 'from'), unsigned].map((field) => fieldFor(field, header));
  const bytes = Buffer.from(input.join('\r\n'), 'latin1');
  const key = keys[by ?? (algorithm === 'ed25519' ? 'ed' : tags.s === 'weak' ? 'weak' : 'rsa')].privateKey;
  const signature =
    algorithm === 'ed25519'
      ? signBytes(null, createHash('sha256').update(bytes).digest(), key)
      : signBytes(digest, bytes, key);
  return unsigned + (given.b ?? signature.toString('base64').replace(/.{70}/g, '$&\r\n '));
}

/** RFC 6376 section 5.4.2: a name that comes again takes the next field, from the bottom. */
function picked(fields: string[], names: string): string[] {
  const left = [...fields].reverse();
  return names.split(':').flatMap((name) => {
    const at = left.findIndex(
      (field) => field.split(':', 1)[0]!.trim().toLowerCase() === name.trim().toLowerCase(),
    );
    return at < 0 ? [] : left.splice(at, 1);
  });
}

function fieldFor(field: string, canonicalization: string): string {
  if (canonicalization !== 'relaxed') return field;
  const colon = field.indexOf(':');
  const value = field
    .slice(colon + 1)
    .replace(/[ \t\r\n]+/g, ' ')
    .trim();
  return `${field.slice(0, colon).trim().toLowerCase()}:${value}`;
}

function bodyFor(body: string, canonicalization: string): string {
  const isRelaxed = canonicalization === 'relaxed';
  const lines = isRelaxed ? body.replace(/[ \t]+(?=\r\n)/g, '').replace(/[ \t]+/g, ' ') : body;
  const text = lines.replace(/(?:\r\n)+$/, '');
  return text === '' && isRelaxed ? '' : `${text}\r\n`;
}
