/**
 * Postmark's inbound webhook: https://postmarkapp.com/developer/webhooks/inbound-webhook, with `RawEmail`. A mail that is too large
 * for one post has links instead of the contents: `RawEmailUrl`, and `ContentUrl` of each attachment.
 */
import type { ReceivedContent, ReceivedMail } from '#mail/received/received-mail.ts';
import { mailboxText } from '#platform/values/address.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';
import {
  fieldOf,
  fileNameOf,
  mailboxesIn,
  onOneLine,
  receivedSpf,
  sendersFields,
} from './received-fields.ts';
import { isWhole, jsonBody, mimeMail, textsOf, type WriteReceived } from './received-post.ts';

export const postmarkReceived: WriteReceived = (post) => {
  const { mail, content, links, file } = post;
  const hasAll = isWhole(post);
  const texts = textsOf(post);
  return jsonBody({
    ...postmarkMembers(mail, content),
    ...postmarkTexts(mail, content, texts),
    ...(texts.isCut && { TextBodyUrl: links.text, HtmlBodyUrl: links.html }),
    ...(hasAll ? { RawEmail: mimeMail(post).toString() } : { RawEmailUrl: links.raw }),
    Attachments: mail.summary.attachments.map((one) => ({
      ...postmarkAttachment(one),
      ...(hasAll
        ? { Content: file(one.position).toString('base64') }
        : { Content: '', ContentUrl: links.attachments[one.position] }),
    })),
  });
};

/** The members that a search shows, too. */
export function postmarkMembers(mail: ReceivedMail, content: ReceivedContent | null) {
  const lists = { From: 'from', To: 'to', Cc: 'cc', Bcc: 'bcc' } as const;
  const of = (name: string) => (content ? mailboxesIn(content, name) : []);
  const [from = { name: '', address: mail.sender }] = of(lists.From);
  return {
    FromName: from.name,
    MessageStream: 'inbound',
    From: from.address,
    FromFull: full(from),
    ...listed('To', of(lists.To)),
    ...listed('Cc', of(lists.Cc)),
    ...listed('Bcc', of(lists.Bcc)),
    OriginalRecipient: mail.recipients.join(', '),
    Subject: onOneLine(mail.subject),
    MessageID: mail.id,
    ReplyTo: of('reply-to').map(mailboxText).join(', '),
    MailboxHash: hashOf(mail.recipients[0]!),
    Date: content ? fieldOf(content, 'date') : '',
    Tag: '',
  };
}

export function postmarkTexts(
  mail: ReceivedMail,
  content: ReceivedContent | null,
  { text, html, reply }: { text: string; html: string; reply: string },
) {
  return { TextBody: text, HtmlBody: html, StrippedTextReply: reply, Headers: headersOf(mail, content) };
}

export function postmarkAttachment(one: ReceivedMail['summary']['attachments'][number]) {
  return {
    Name: fileNameOf(one),
    ContentType: one.type,
    ContentLength: one.size,
    ContentID: one.contentId ?? '',
  };
}

function listed(name: 'To' | 'Cc' | 'Bcc', list: NamedAddress[]) {
  return { [name]: list.map(mailboxText).join(', '), [`${name}Full`]: list.map(full) };
}

function full({ name, address }: NamedAddress) {
  return { Email: address, Name: name, MailboxHash: hashOf(address) };
}

/** The part of an address after the `+`. */
function hashOf(address: string): string {
  const [plus, at] = [address.indexOf('+'), address.lastIndexOf('@')];
  return plus < 0 || at < plus ? '' : address.slice(plus + 1, at);
}

/** Those that have a member of their own, or say how the content was encoded. */
const left = /^(?:from|to|cc|bcc|subject|date|reply-to|content-type|content-transfer-encoding)$/i;

function headersOf(mail: ReceivedMail, content: ReceivedContent | null) {
  const { spam } = mail.summary;
  const ours = {
    'Return-Path': `<${mail.sender}>`,
    'Received-SPF': receivedSpf(mail),
    ...(spam && {
      'X-Spam-Status': spam.isSpam ? 'Yes' : 'No',
      'X-Spam-Score': String(spam.score),
      'X-Spam-Tests': spam.rules.join(','),
    }),
  };
  const own = Object.entries(ours).map(([Name, Value]) => ({ Name, Value: onOneLine(Value) }));
  const given = content ? sendersFields(content).filter(({ name }) => !left.test(name)) : [];
  return [...own, ...given.map(({ name: Name, value: Value }) => ({ Name, Value }))];
}
