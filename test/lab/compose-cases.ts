/** The cases of fixtures/compose, and fields for a message with defaults for what a test does not care about. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Attachment } from '../../src/compose/attachment.ts';
import type { Fields } from '../../src/compose/mime.ts';
import { parseMailbox } from '../../src/mail/address.ts';

export const folder = join(import.meta.dirname, '../fixtures/compose');
export const cases = readdirSync(folder).flatMap((file) =>
  file.endsWith('.json') ? basename(file, '.json') : [],
);

/** The content of a case: `from` as a caller writes it, and an attachment's content as text or base64. */
export type Written = Omit<Partial<Fields>, 'from' | 'attachments'> & {
  from?: string;
  attachments?: (Omit<Attachment, 'content'> & { text?: string; base64?: string })[];
};

export function toFields({ from, attachments = [], ...fields }: Written): Fields {
  return {
    from: parseMailbox(from ?? 'App <app@sender.invalid>')!,
    to: ['ann@there.invalid'],
    subject: 'Hello',
    headers: {},
    messageId: 'id@postern.invalid',
    date: Date.UTC(2026, 0, 2, 3, 4, 5),
    ...fields,
    attachments: attachments.map(({ text, base64 = '', ...rest }) => ({
      ...rest,
      content: text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text),
    })),
  };
}

export const fieldsOf = (name: string) =>
  toFields(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')));
