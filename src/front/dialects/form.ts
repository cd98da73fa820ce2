/**
 * Forms (RFC 7578 and application/x-www-form-urlencoded). The bytes are in memory when they are parsed: request-body.ts has
 * bounded them while they arrived.
 */
import { Readable } from 'node:stream';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { Busboy } from '@fastify/busboy';
import type { FormBody } from '#front/http/body-limits.ts';
import { bytesOfCharacter, decoded, fieldsIn, isUrlencoded } from '#front/http/urlencoded.ts';
import { Refusal } from '#platform/values/refusal.ts';

const longestName = 200;
/** The limit of each part. */
const limits = { fieldNameSize: longestName, headerPairs: 20, headerSize: 8 * 1024 };

export interface FormFile {
  field: string;
  filename: string;
  contentType: string;
  content: Buffer;
}

export class Form {
  readonly #fields: Map<string, string[]>;
  readonly files: readonly FormFile[];

  constructor(fields: Map<string, string[]>, files: FormFile[]) {
    this.#fields = fields;
    this.files = files;
  }

  /** This form with other fields before its own. */
  after(others: [name: string, value: string][]): Form {
    const fields = new Map<string, string[]>();
    const add = (name: string, value: string) => {
      const values = fields.get(name);
      if (values) values.push(value);
      else fields.set(name, [value]);
    };
    for (const [name, value] of others) add(name, value);
    for (const [name, values] of this.#fields) for (const value of values) add(name, value);
    return new Form(fields, [...this.files]);
  }

  all(name: string): string[] {
    return this.#fields.get(name) ?? [];
  }

  /** If a field that has one value is given twice, the last one counts. */
  one(name: string): string | undefined {
    return this.all(name).at(-1);
  }

  recipients(): Record<'to' | 'cc' | 'bcc', string[]> {
    return { to: this.all('to'), cc: this.all('cc'), bcc: this.all('bcc') };
  }

  /** The fields whose name begins so, by the rest of their names. */
  under(prefix: string): [name: string, value: string][] {
    return [...this.#fields].flatMap(([name, values]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), values.at(-1)!] as [string, string]] : [],
    );
  }
}

/** Ruby's and PHP's clients write lists as `to[]` or `attachment[1]`. The parser gives undefined for a part without a name. */
function nameOf(given: string | undefined): string {
  return (given ?? '').replace(/\[\d{0,4}\]$/, '');
}

/** Stops at the limits. */
export async function parseForm(bytes: Buffer, contentType: string, declared: FormBody): Promise<Form> {
  const fields = new Map<string, string[]>();
  const files: FormFile[] = [];
  const take = (given: string | undefined, value: string) => {
    const name = nameOf(given);
    if (name.length > longestName || value.length > longestOf(declared, name)) throw tooLarge(name);
    const values = fields.get(name);
    if (values) values.push(value);
    else fields.set(name, [value]);
  };
  if (isUrlencoded(contentType)) await parseUrlencoded(bytes, declared, take);
  else await parseMultipart(bytes, contentType, declared, { take, files });
  return new Form(fields, files);
}

function tooLarge(name: string): Refusal {
  return new Refusal('BAD_REQUEST', `The field ${name.slice(0, 50)} is too large.`);
}

/** The fields have been counted while they arrived (front/http/body-limits.ts). */
async function parseUrlencoded(
  bytes: Buffer,
  declared: FormBody,
  take: (name: string, value: string) => void,
): Promise<void> {
  for await (const { name, value } of fieldsIn(bytes)) {
    if (value.length > longestOf(declared, nameOf(name)) * bytesOfCharacter) throw tooLarge(name);
    take(name, await decoded(value));
  }
}

async function parseMultipart(
  bytes: Buffer,
  contentType: string,
  declared: FormBody,
  { take, files }: { take: (name: string, value: string) => void; files: FormFile[] },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const source = Readable.from(slicesOf(bytes));
    // Nothing more is parsed then: a million empty parts would take seconds.
    const refuse = (refusal: unknown) => {
      source.unpipe();
      source.destroy();
      reject(refusal);
    };
    const malformed = () => refuse(new Refusal('BAD_REQUEST', 'The body is not a well-formed form.'));
    const tooMany = () => refuse(new Refusal('BAD_REQUEST', 'The form has too many fields or files.'));
    const parser = openParser(contentType, declared);
    parser.on('field', (given, value, isNameCut, isValueCut) => {
      try {
        if (isNameCut || isValueCut) throw tooLarge(nameOf(given));
        take(given, value);
      } catch (refusal) {
        refuse(refusal);
      }
    });
    parser.on('file', (field, stream, filename, _coding, type) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('error', malformed);
      stream.on('end', () =>
        files.push({
          field: nameOf(field),
          filename: filename ?? '',
          contentType: type,
          content: Buffer.concat(chunks),
        }),
      );
    });
    parser.on('partsLimit', tooMany);
    parser.on('filesLimit', tooMany);
    parser.on('fieldsLimit', tooMany);
    parser.on('error', malformed);
    parser.on('finish', resolve);
    // Without this, a form that is cut off inside a part would wait for ever.
    parser.on('close', malformed);
    source.pipe(parser);
  });
}

const sliceSize = 64 * 1024;

/** Other requests run between two slices. */
async function* slicesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += sliceSize) {
    yield bytes.subarray(at, at + sliceSize);
    await yieldToOthers();
  }
}

function longestOf({ texts, text }: FormBody, name: string): number {
  return Object.hasOwn(texts, name) ? texts[name]! : text;
}

function openParser(contentType: string, { fields, files, text, texts }: FormBody) {
  const fieldSize = Math.max(text, ...Object.values(texts));
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: { ...limits, fields, files, parts: fields + files, fieldSize },
      preservePath: false,
    });
  } catch {
    throw new Refusal('BAD_REQUEST', 'Content-Type: the boundary of the form is missing.');
  }
}
