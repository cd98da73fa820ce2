/**
 * JSON as it is stored in the columns named `packed`: deflated with a dictionary of what most of it has in common, which makes
 * the record of an attempt a fifth. The first byte is the number of the dictionary. A dictionary is part of the database's
 * format and never changes; a better one gets the next number.
 *
 * In rows that are passed as JSON, the bytes are hexadecimal as PostgreSQL reads it; `fromHex` makes bytes of it on SQLite.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type Compress, keepDeflateRaw } from '#platform/vendor/kept-compression.ts';

/**
 * Pieces of records, one after the other; the line ends are left out. The last ones are the cheapest to refer to. A larger
 * dictionary costs more time than it saves bytes.
 */
const dictionary = Buffer.from(
  String.raw`
{"outcome":{"outcome":"deferred","category":"unreachable","fault":"infrastructure","bounce":null,"origin":"local",
"diagnostic":"","possibleDuplicate":false,"rule":"greylisting","retryAfterMs":null},
"outcome":"bounced","category":"unknown_user","fault":"recipient","bounce":"hard","policy":"mta-sts"}
"dane"TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384 X25519"group":"X25519","verified":false,"policy":"opportunistic"}",
"from":"note","text":"connection refused: :25, not verified: its certificate was not accepted ()"},
{"ms":550 5.1.1 user unknown"},"text":"421 4.7.0 Try again later"},
"text":"451 4.7.1 ","text":"QUIT"},{"from":"note",
"text":"over a connection to  [] that has carried one mail; connecting to  []:25"},
{"ms":,"from":"server","text":"220 .google.com .protection.outlook.com ESMTP Postfix"},
{"ms":,"from":"client","text":"EHLO mail."},{"ms":,"from":"server",
"text":"250-mx\\n250-PIPELINING\\n250-SIZE 52428800\\n250-ETRN\\n250-STARTTLS
\\n250-AUTH PLAIN LOGIN\\n250-ENHANCEDSTATUSCODES\\n250-8BITMIME\\n250-DSN\\n250-CHUNKING\\n250 SMTPUTF8\\n250 STARTTLS"},
{"ms":,"from":"client","text":"STARTTLS"},{"ms":,"from":"server","text":"220 2.0.0 Ready to start TLS"},
{"ms":{"outcome":{"outcome":"delivered","category":null,"fault":null,"bounce":null,"origin":"remote",
"diagnostic":"250 2.0.0 Ok: queued as ","possibleDuplicate":false,"rule":null,"retryAfterMs":null},
"reply":{"code":250,"enhanced":"2.0.0","text":"OK","text":"Ok: queued as "},
"mx":{"host":"mx.","address":"2a00:1450:400","port":25},"tls":null,"transcript":[{"ms":0,"from":"note",
"text":"TLSv1.3 TLS_AES_256_GCM_SHA384 X25519MLKEM768, verified"},
{"ms":1,"from":"client","text":"MAIL FROM:<b-0> SIZE= BODY=8BITMIME SMTPUTF8"},
{"ms":,"from":"client","text":"RCPT TO:<"},{"ms":,"from":"client","text":"DATA"},
{"ms":,"from":"server","text":"250 2.1.0 Sender ok"},{"ms":,"from":"server","text":"250 2.1.5 Recipient ok"},
{"ms":,"from":"server","text":"354 End data with <CR><LF>.<CR><LF>"},
{"ms":,"from":"server","text":"354 go ahead"},{"ms":,"from":"client","text":"<message,  bytes with its final dot>"},
{"ms":,"from":"server","text":"250 2.0.0 Ok: queued as "}]}[{"code":250,"enhanced":"2.0.0","text":"Ok: queued as "},
{"host":"mx","address":"1","port":25},{"protocol":"TLSv1.3","cipher":"TLS_AES_256_GCM_SHA384",
"group":"X25519MLKEM768","verified":true,"policy":"opportunistic"}]
`.replaceAll('\n', ''),
);

const number = 1;
/** A small window and hash table take less time to set up, which is most of the time for a short text. */
const options = { dictionary, level: 6, windowBits: 12, memLevel: 5, chunkSize: 1024 };

/** The record of an attempt is a tenth of this. A longer text is compressed in a context of its own. */
const maxKept = 16 * 1024;
/** Made at the first use, one for each thread. */
let compress: Compress | undefined;

/** Hexadecimal, for a row that is passed as JSON. */
export function packJson(value: unknown): string {
  const bytes = Buffer.from(JSON.stringify(value));
  compress ??= keepDeflateRaw(options, maxKept);
  const packed = (bytes.length < maxKept && compress(bytes)) || deflateRawSync(bytes, options);
  return `\\x0${number}${packed.toString('hex')}`;
}

export function unpackJson(packed: Buffer): unknown {
  if (packed[0] !== number) throw new Error(`a record is packed with the unknown dictionary ${packed[0]}`);
  return JSON.parse(inflateRawSync(packed.subarray(1), { dictionary }).toString());
}

/** Bytes for a row that is passed as JSON. */
export const toHex = (bytes: Buffer) => `\\x${bytes.toString('hex')}`;

/** SQLite's expression for the bytes of hexadecimal. */
export const fromHex = (expression: string) => String.raw`unhex(${expression}, '\x')`;
