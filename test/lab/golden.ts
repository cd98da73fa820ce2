/**
 * The golden folder of returned mail: NAME.eml as it came (line ends as Git has them; CRLF on the wire), and beside it
 * NAME.json with the role of the address that it came to, and what is to be read in it. All of it is our own writing, in
 * the shapes that mail servers are known to produce. The return path in them is that of one delivery under one secret.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import type { AddressRole } from '#mail/returned/service-addresses.ts';

export interface Golden {
  name: string;
  raw: Buffer;
  role: AddressRole;
  /** In the JSON only if it is true. */
  fromNullSender: boolean;
  reading: ParseResult;
}

export const goldenSecret = 'golden';
export const goldenDomain = 'bounces.postern.example';
export const goldenDelivery = '01a1fde4-3a44-750e-831d-9eda6307a7e9';
/** As it was written before version 0.8: bounces to such an address still come back. */
export const goldenReturnPath = `b-${goldenDelivery.replaceAll('-', '')}-1a7770a1e92bc1c1@${goldenDomain}`;

const folder = join(import.meta.dirname, '../fixtures/returned');

export function goldenMails(): Golden[] {
  const names = readdirSync(folder).filter((file) => file.endsWith('.eml'));
  return names.map((file) => {
    const text = readFileSync(join(folder, file), 'latin1');
    const {
      role,
      reading,
      fromNullSender = false,
    } = JSON.parse(readFileSync(join(folder, file.replace(/eml$/, 'json')), 'utf8'));
    const raw = Buffer.from(text.replace(/\r?\n/g, '\r\n'), 'latin1');
    return { name: file.slice(0, -'.eml'.length), raw, role, fromNullSender, reading };
  });
}

/** A mail with a report as an attachment, packed. */
export function reportOf(text: string): Buffer {
  const packed = gzipSync(text).toString('base64');
  return Buffer.from(
    ['MIME-Version: 1.0', 'Content-Type: application/gzip', 'Content-Transfer-Encoding: base64']
      .concat(
        'Content-Disposition: attachment; filename="report.gz"',
        '',
        ...(packed.match(/.{1,76}/g) ?? []),
        '',
      )
      .join('\r\n'),
  );
}
