/**
 * How the bytes of a message are stored: compressed by zstd with a dictionary of what most mails have in common, unless that
 * makes them no smaller. Large messages are stored as they are: they are read again for each attempt, and most of their bytes
 * are attachments that are compressed already.
 *
 * A packed message begins with the number of its dictionary, a byte below 32. No header and no patch of a message
 * (platform/base/byte-patch.ts) begins with such a byte, so messages that older versions stored are recognized. A dictionary
 * is part of the database's format and never changes; a better one gets the next number.
 */
import { constants, zstdDecompressSync } from 'node:zlib';
import { type Compress, keepZstd } from '#platform/vendor/kept-compression.ts';
import { maxPreloadedBytes } from './glossary.ts';

/** The last strings of a dictionary are the cheapest to refer to. A larger one costs more time than it saves bytes. */
const dictionary = Buffer.from(
  `<!doctype html><html lang=3D"en" xmlns=3D"http://www.w3.org/1999/xhtml"><head><meta charset=3D"utf-8"><meta http-equiv=3D"Content-Type" content=3D"text/html; charset=3DUTF-8"><meta name=3D"viewport" content=3D"width=3Ddevice-width, initial-scale=3D1"><title></title></head><body style=3D"margin:0;padding:0;background-color:#ffffff;font-family:Arial, Helvetica, sans-serif;color:#000000"><table role=3D"presentation" width=3D"100%" border=3D"0" cellpadding=3D"0" cellspacing=3D"0" align=3D"center"><tr><td align=3D"left" valign=3D"top" style=3D"padding: 0 0 16px;font-size: 14px;line-height: 20px;text-align:center"><p style=3D"margin:0 0 10px"><a href=3D"https://www." target=3D"_blank" style=3D"text-decoration:none;font-weight:bold;display:inline-block;border-radius:4px;border-bottom:1px solid #eeeeee"><img src=3D"https://" alt=3D"" width=3D"600" style=3D"display:block;max-width:100%;height:auto"><br><span style=3D"font-size:12px"></span></a></p></td></tr></tbody></table></div></body></html>
&nbsp;&amp; the and your you for this that with from have has been are was will not can our please Thank you Hello, Hi Best regards
Content-Disposition: attachment; filename="
Content-Type: application/pdf; name="
Content-Transfer-Encoding: base64
Content-Transfer-Encoding: 8bit
Content-Transfer-Encoding: 7bit
Content-Type: multipart/mixed;
List-Unsubscribe-Post: List-Unsubscribe=One-Click
List-Unsubscribe: <https://
Received: from by with ESMTPSA id for ; Mon, Tue, Wed, Thu, Fri, Sat, Sun, Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec 2026
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; d=
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=
 h=Content-Transfer-Encoding: Content-Type: MIME-Version: Date: Message-ID:
 To: From: Subject: From: Reply-To: To: Cc: Subject: Date: Message-ID:
 MIME-Version: Content-Type: Content-Transfer-Encoding: List-Id:
 List-Unsubscribe: List-Unsubscribe-Post: List-Help: List-Subscribe:
 List-Post: List-Owner: List-Archive: Feedback-ID; q=dns/txt; s=
 t=17
 bh=
 b=
Subject: 
From: <no-reply@
Reply-To: 
To: @gmail.com
Message-ID: <
Date: +0000
MIME-Version: 1.0
Content-Type: text/html; charset=utf-8
Content-Type: multipart/alternative;
 boundary="=_"

--=_
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

`.replaceAll('\n', '\r\n'),
  'latin1',
);

const number = 1;
const options = { dictionary, params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Made at the first use, one for each thread. */
let compress: Compress | undefined;

export function packMessage(raw: Buffer): Buffer {
  if (raw.length > maxPreloadedBytes) return raw;
  compress ??= keepZstd(options, maxPreloadedBytes);
  const packed = compress(raw);
  if (packed === null || packed.length + 1 >= raw.length) return raw;
  const stored = Buffer.allocUnsafe(packed.length + 1);
  stored[0] = number;
  stored.set(packed, 1);
  return stored;
}

/** The first byte of a sealed message (accounts/seal.ts). */
export const sealedMark = 31;

export const isSealed = (stored: Buffer): boolean => stored[0] === sealedMark;

export function unpackMessage(stored: Buffer): Buffer {
  if (stored.length === 0 || stored[0]! >= 32) return stored;
  if (stored[0] !== number) throw new Error(`a message is packed with the unknown dictionary ${stored[0]}`);
  return zstdDecompressSync(stored.subarray(1), { dictionary, maxOutputLength: maxPreloadedBytes });
}
