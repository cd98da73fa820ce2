/**
 * Mailgun's routes: https://documentation.mailgun.com/docs/mailgun/user-manual/receive-forward-store/receive-http. To a URL that
 * ends in `mime`, the whole message is posted, as for `forward` there. A mail that is too large for one post is posted as for
 * `store`: `attachments` and `message-url` lead to its parts.
 */
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { type FormField, multipart, urlencoded } from './form-body.ts';
import { fieldOf, fileNameOf, onOneLine, sendersFields } from './received-fields.ts';
import { isWhole, mimeMail, type ReceivedPost, textsOf, type WriteReceived } from './received-post.ts';

export const mailgunReceived: WriteReceived = (post) => {
  const { mail, content, raw, url, signature } = post;
  const wantsMime = /mime\/?$/.test(new URL(url).pathname);
  const base = {
    recipient: mail.recipients.join(','),
    sender: mail.sender,
    from: onOneLine(mail.fromHeader),
    subject: onOneLine(mail.subject),
  };
  // The signature comes last: a parser that keeps the last value of a name keeps ours.
  if (wantsMime || content === null) {
    const bytes = content === null ? raw : mimeMail(post);
    return urlencoded(fieldsOf({ ...base, 'body-mime': bytes, ...signature }));
  }
  const texts = textsOf(post);
  const files = filesOf(post);
  const fields = fieldsOf({
    ...base,
    ...copied(post),
    'body-plain': texts.text,
    'stripped-text': texts.reply,
    ...(content.html !== null && { 'body-html': texts.html }),
    ...(texts.isCut && { 'body-plain-url': post.links.text, 'body-html-url': post.links.html }),
    'message-headers': JSON.stringify(headersOf(mail, sendersFields(content))),
    ...files.info,
    ...signature,
  });
  return files.list.length === 0 ? urlencoded(fields) : multipart([...fields, ...files.list]);
};

function fieldsOf(values: Record<string, string | Buffer>): FormField[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

/** Mailgun posts each header as a field, too; these are the ones that programs read. */
const copiedFields = ['Message-Id', 'In-Reply-To', 'References', 'Date', 'To', 'Cc', 'Reply-To'];

function copied({ content }: ReceivedPost): Record<string, string> {
  const found = copiedFields.map((name) => [name, fieldOf(content!, name.toLowerCase())] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== ''));
}

/** As Mailgun does, the verdicts are fields of the header. */
function headersOf({ summary }: ReceivedMail, fields: { name: string; value: string }[]): [string, string][] {
  const { verdicts, spam } = summary;
  const ours: [string, string][] = [
    ['X-Mailgun-Incoming', 'Yes'],
    ['X-Mailgun-Spf', verdicts.spf.result],
    ['X-Mailgun-Dkim-Check-Result', verdicts.dkim.some(({ result }) => result === 'pass') ? 'Pass' : 'Fail'],
  ];
  if (spam)
    ours.push(['X-Mailgun-Sflag', spam.isSpam ? 'Yes' : 'No'], ['X-Mailgun-Sscore', String(spam.score)]);
  return [...ours, ...fields.map(({ name, value }): [string, string] => [name, value])];
}

function filesOf(post: ReceivedPost): { info: Record<string, string>; list: FormField[] } {
  const { mail, file, links } = post;
  const { attachments } = mail.summary;
  if (!isWhole(post)) {
    const stored = attachments.map((one) => ({
      url: links.attachments[one.position],
      'content-type': one.type,
      name: fileNameOf(one),
      size: one.size,
    }));
    return { info: { attachments: JSON.stringify(stored), 'message-url': links.raw }, list: [] };
  }
  if (attachments.length === 0) return { info: {}, list: [] };
  const nameOf = (index: number) => `attachment-${index + 1}`;
  const ids = attachments.flatMap(({ contentId }, index) =>
    contentId === null ? [] : [[`<${contentId}>`, nameOf(index)]],
  );
  const info = {
    'attachment-count': String(attachments.length),
    ...(ids.length > 0 && { 'content-id-map': JSON.stringify(Object.fromEntries(ids)) }),
  };
  const list = attachments.map((one, index) => ({
    name: nameOf(index),
    value: file(one.position),
    filename: fileNameOf(one),
    type: one.type,
  }));
  return { info, list };
}
