/** The header of a received mail as other services' formats have it. */
import type { ReceivedAttachment, ReceivedContent, ReceivedMail } from '#mail/received/received-mail.ts';
import { mailboxText } from '#platform/values/address.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';

/**
 * Fields that say what we found out: those of the sender would be mistaken for ours. And those that say how the content of the
 * whole mail was written, because programs put the header before the content that they are given.
 */
const left =
  /^(?:return-path|received-spf|x-spam-.*|x-mailgun-.*|x-original-to|content-disposition|content-transfer-encoding|content-id)$/i;

const addressFields = /^(?:from|to|cc|bcc|reply-to|sender)$/i;

/** The fields of the sender, each on one line. Lists of addresses are written so that a reader finds the same addresses. */
export function sendersFields({
  headers,
}: Pick<ReceivedContent, 'headers'>): { name: string; value: string }[] {
  return headers
    .filter(({ name }) => !left.test(name))
    .map(({ name, value }) => ({
      name: onOneLine(name),
      value: onOneLine(addressFields.test(name) ? listText(value) : value),
    }));
}

export function fieldOf({ headers }: Pick<ReceivedContent, 'headers'>, wanted: string): string {
  const found = headers.find(({ name }) => name.toLowerCase() === wanted);
  return found ? onOneLine(found.value) : '';
}

/** The mailboxes of all fields of this name; none if the text is not a list. */
export function mailboxesIn({ headers }: Pick<ReceivedContent, 'headers'>, wanted: string): NamedAddress[] {
  return headers
    .filter(({ name }) => name.toLowerCase() === wanted)
    .flatMap(({ value }) => readAddressList(value)?.mailboxes ?? [])
    .map(({ name, address }) => ({ name: onOneLine(name), address: onOneLine(address) }));
}

function listText(text: string): string {
  const list = readAddressList(text);
  return list ? list.mailboxes.map(mailboxText).join(', ') : text;
}

export function onOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').toWellFormed();
}

/** The name of a file that no reader refuses: those with a directory and those that are empty are dropped. */
export function fileNameOf({ filename, position }: ReceivedAttachment): string {
  const name = onOneLine(filename ?? '')
    .replace(/[\\/]/g, '_')
    .trim();
  return /^\.*$/.test(name) ? `attachment-${position + 1}` : name;
}

/** RFC 7208 section 9.1. */
export function receivedSpf({ summary, peer, helo, sender }: ReceivedMail): string {
  const { result } = summary.verdicts.spf;
  const text = (value: string) => `"${onOneLine(value).replace(/["\\]/g, '\\$&')}"`;
  const pairs = [`client-ip=${peer}`, `helo=${text(helo)}`, `envelope-from=${text(sender)}`];
  return `${spfResults[result] ?? result} identity=mailfrom; ${pairs.join('; ')}`;
}

const spfResults: Record<string, string> = {
  none: 'None',
  pass: 'Pass',
  fail: 'Fail',
  softfail: 'SoftFail',
  neutral: 'Neutral',
  temperror: 'TempError',
  permerror: 'PermError',
};
