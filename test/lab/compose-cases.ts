/** The cases of fixtures/compose, and fields for a message with defaults for what a test does not care about. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Attachment } from '#mail/compose/attachment.ts';
import type { Fields } from '#mail/compose/mime.ts';
import { parseMailbox } from '#platform/values/address.ts';

export const folder = join(import.meta.dirname, '../fixtures/compose');
export const cases = readdirSync(folder).flatMap((file) =>
  file.endsWith('.json') ? basename(file, '.json') : [],
);

/** The content of a case: `from` as a caller writes it, and an attachment's content as text or base64. */
export type Written = Omit<Partial<Fields>, 'from' | 'to' | 'cc' | 'replyTo' | 'attachments'> & {
  from?: string;
  to?: string[];
  cc?: string[];
  replyTo?: string | string[];
  attachments?: (Omit<Attachment, 'content'> & { text?: string; base64?: string })[];
};

const named = (texts: string | string[]) => [texts].flat().map((text) => parseMailbox(text)!);

export function toFields(written: Written): Fields {
  const { from, to = ['ann@there.invalid'], cc, replyTo, attachments = [], ...fields } = written;
  return {
    from: parseMailbox(from ?? 'App <app@sender.invalid>')!,
    to: named(to),
    ...(cc && { cc: named(cc) }),
    ...(replyTo && { replyTo: named(replyTo) }),
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
