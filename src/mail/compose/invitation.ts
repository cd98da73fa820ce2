/**
 * Calendar invitations (RFC 6047): a file of the type `text/calendar; method=…` is also an alternative of the content,
 * because Gmail and Outlook offer to accept an invitation only there. The file stays attached for other calendars, as
 * application/ics, like the invitations of Google Calendar: two parts of text/calendar would be shown as two invitations.
 */
import { isUtf8 } from 'node:buffer';
import { buildHeaderValue, parseHeaderValue } from '#platform/vendor/nodemailer.ts';
import { leaf, type MimePart } from './part.ts';
import { base64, encodeText, toCrlf } from './transfer-encoding.ts';

/** Null if the file is not an invitation, such as a calendar without a method. */
export function invitationOf({ content, contentType }: Given): MimePart | null {
  if (!contentType || !/^text\/calendar\s*;/i.test(contentType)) return null;
  const { method: given, charset = 'utf-8', name: _, ...others } = paramsOf(contentType);
  if (!given || !/^[A-Za-z0-9-]{1,64}$/.test(given)) return null;
  const params = { charset, method: (methodIn(content) ?? given).toUpperCase(), ...others };
  const isText = /^(utf-?8|us-ascii)$/i.test(charset) && isUtf8(content);
  // RFC 5545 section 3.1: lines end with CRLF, which many programs do not write.
  const encoded = isText
    ? encodeText(toCrlf(content.toString()))
    : ({ encoding: 'base64', bytes: base64(content) } as const);
  return leaf(buildHeaderValue({ value: 'text/calendar', params }), encoded);
}

/** RFC 6047 section 2.4: the type names the method of the calendar. Outlook refuses an invitation whose methods differ. */
function methodIn(content: Buffer): string | undefined {
  return /^METHOD:([a-z0-9-]{1,64})[ \t]*\r?$/im.exec(content.toString('latin1', 0, maxHead))?.[1];
}

/** The method stands before the events. */
const maxHead = 64 * 1024;

interface Given {
  content: Buffer;
  contentType?: string;
}

function paramsOf(contentType: string): Partial<Record<string, string>> {
  return parseHeaderValue(contentType, { stripComments: true }).params;
}
