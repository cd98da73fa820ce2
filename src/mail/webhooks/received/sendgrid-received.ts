/**
 * SendGrid's Inbound Parse webhook:
 * https://www.twilio.com/docs/sendgrid/for-developers/parsing-email/setting-up-the-inbound-parse-webhook. All text is UTF-8. A mail
 * that is too large for one post has `email-url` and `attachment-urls` instead of files; one that could not be parsed is posted
 * raw, in the field `email`.
 */
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { type FormField, multipart } from './form-body.ts';
import { fieldOf, fileNameOf, onOneLine, receivedSpf, sendersFields } from './received-fields.ts';
import { isWhole, type ReceivedPost, textsOf, type WriteReceived } from './received-post.ts';

export const sendgridReceived: WriteReceived = (post) => {
  const { mail, content, raw, links } = post;
  const texts = textsOf(post);
  const fields: Record<string, string | Buffer> = {
    ...(content ? { headers: headerText(mail, sendersFields(content)) } : { email: raw }),
    dkim: dkimText(mail),
    to: content ? fieldOf(content, 'to') : mail.recipients.join(', '),
    ...(content && fieldOf(content, 'cc') !== '' && { cc: fieldOf(content, 'cc') }),
    from: onOneLine(mail.fromHeader),
    subject: onOneLine(mail.subject),
    ...(content && { text: texts.text }),
    ...(content?.html != null && { html: texts.html }),
    ...(texts.isCut && { 'text-url': links.text, 'html-url': links.html }),
    sender_ip: mail.peer,
    envelope: JSON.stringify({ to: mail.recipients, from: mail.sender }),
    ...spamFields(mail),
    charsets: JSON.stringify(charsets),
    SPF: mail.summary.verdicts.spf.result,
  };
  return multipart([...Object.entries(fields).map(([name, value]) => ({ name, value })), ...filesOf(post)]);
};

const charsets = {
  to: 'UTF-8',
  from: 'UTF-8',
  cc: 'UTF-8',
  subject: 'UTF-8',
  headers: 'UTF-8',
  text: 'utf-8',
  html: 'utf-8',
  filename: 'UTF-8',
};

function headerText(mail: ReceivedMail, fields: { name: string; value: string }[]): string {
  const spf = { name: 'Received-SPF', value: receivedSpf(mail) };
  return [spf, ...fields].map(({ name, value }) => `${name}: ${value}\n`).join('');
}

/** `{@example.com : pass}`. */
function dkimText({ summary }: ReceivedMail): string {
  const results = summary.verdicts.dkim.map(({ domain, result }) => `@${domain ?? ''} : ${result}`);
  return results.length === 0 ? 'none' : `{${results.join(', ')}}`;
}

function spamFields({ summary: { spam } }: ReceivedMail): Record<string, string> {
  if (spam === null) return {};
  const report = `Spam: ${spam.isSpam ? 'Yes' : 'No'}, score ${spam.score} of ${spam.threshold}: ${spam.rules.join(', ')}`;
  return { spam_score: String(spam.score), spam_report: report };
}

function filesOf(post: ReceivedPost): FormField[] {
  const { mail, content, file, links } = post;
  if (!content) return [];
  const { attachments } = mail.summary;
  if (!isWhole(post))
    return [
      { name: 'attachments', value: '0' },
      { name: 'email-url', value: links.raw },
      {
        name: 'attachment-urls',
        value: JSON.stringify(
          attachments.map((one) => ({ ...infoOf(one), url: links.attachments[one.position] })),
        ),
      },
    ];
  const nameOf = (index: number) => `attachment${index + 1}`;
  const info = attachments.map((one, index) => [nameOf(index), infoOf(one)]);
  const ids = attachments.flatMap(({ contentId }, index) =>
    contentId === null ? [] : [[contentId, nameOf(index)]],
  );
  return [
    { name: 'attachments', value: String(attachments.length) },
    ...(attachments.length === 0
      ? []
      : [{ name: 'attachment-info', value: JSON.stringify(Object.fromEntries(info)) }]),
    ...(ids.length === 0 ? [] : [{ name: 'content-ids', value: JSON.stringify(Object.fromEntries(ids)) }]),
    ...attachments.map((one, index) => ({
      name: nameOf(index),
      value: file(one.position),
      filename: fileNameOf(one),
      type: one.type,
    })),
  ];
}

/** SendGrid gives the name twice, and its documents name one of both. */
function infoOf(one: ReceivedMail['summary']['attachments'][number]) {
  const name = fileNameOf(one);
  return {
    filename: name,
    name,
    type: one.type,
    ...(one.contentId !== null && { 'content-id': one.contentId }),
  };
}
