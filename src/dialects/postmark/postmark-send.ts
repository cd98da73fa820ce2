/** Postmark's `POST /email` and `POST /email/batch`. */
import { z } from 'zod';
import { iso } from '../../base/clock.ts';
import { limitConcurrency } from '../../base/concurrency.ts';
import { Refusal } from '../../mail/refusal.ts';
import { check, type DialectCall, type DialectRoute } from '../dialect.ts';
import { type DialectSend, type SendTerms, sendAs } from '../dialect-send.ts';
import { addressesIn, mailboxesIn, maxAddresses } from './postmark-addresses.ts';
import { allInactive, postmarkError, someInactive } from './postmark-errors.ts';
import { checkStream } from './postmark-stream.ts';

const sending = { grant: 'email:send', hasBody: true } as const;

export const postmarkSendRoutes: DialectRoute[] = [
  { route: 'POST /email', ...sending, respond: (call) => send(call, call.body) },
  { route: 'POST /email/batch', ...sending, respond: sendBatch },
  { route: 'POST /email/withTemplate', ...sending, respond: refuseTemplate },
  { route: 'POST /email/batchWithTemplates', ...sending, respond: refuseTemplate },
];

const maxBatch = 500;
/** Emails of a batch that are accepted at once, so that they share commits. */
const atOnce = 10;

const terms: SendTerms = {
  maxRecipients: maxAddresses,
  names: {
    from: 'From',
    to: 'To',
    cc: 'Cc',
    bcc: 'Bcc',
    replyTo: 'ReplyTo',
    subject: 'Subject',
    html: 'HtmlBody',
    text: 'TextBody',
    headers: 'Headers',
    tags: 'Metadata',
    attachments: 'Attachments',
  },
};

const optionalText = z.string().nullish();

/** What our own rules do not check: they say what is wrong in the other members. */
const request = z.object({
  From: z.unknown().optional(),
  To: optionalText,
  Cc: optionalText,
  Bcc: optionalText,
  ReplyTo: optionalText,
  Subject: z.unknown().optional(),
  HtmlBody: z.unknown().optional(),
  TextBody: z.unknown().optional(),
  Tag: optionalText,
  Metadata: z.record(z.string(), z.unknown()).nullish(),
  Headers: z.array(z.object({ Name: z.string(), Value: z.unknown().optional() })).nullish(),
  TrackOpens: z.boolean().nullish(),
  TrackLinks: z.enum(['None', 'HtmlAndText', 'HtmlOnly', 'TextOnly']).nullish(),
  MessageStream: optionalText,
  Attachments: z.array(z.record(z.string(), z.unknown())).nullish(),
  TemplateId: z.unknown().optional(),
  TemplateAlias: z.unknown().optional(),
});

type PostmarkEmail = z.output<typeof request>;

async function send(call: DialectCall, body: unknown, position?: number) {
  const email = check(request, body);
  if (email.TemplateId || email.TemplateAlias) return refuseTemplate();
  checkStream(email.MessageStream);
  const { answer } = await sendAs(call, fieldsOf(email), { ...terms, position }).catch((error) => {
    const isInactive = error instanceof Refusal && error.code === 'ALL_RECIPIENTS_SUPPRESSED';
    // If nobody in To can be reached, the email is refused, whoever else it has.
    throw isInactive ? allInactive(addressesIn(email.To ?? '', 'To').map(({ address }) => address)) : error;
  });
  const { To, Cc, Bcc } = email;
  return {
    To,
    ...(Cc && { Cc }),
    ...(Bcc && { Bcc }),
    SubmittedAt: iso(call.now),
    MessageID: answer.emailId,
    ErrorCode: 0,
    Message: answer.suppressed.length > 0 ? someInactive(answer.suppressed) : 'OK',
  };
}

/** A batch is answered 200 whatever becomes of its emails: each has an error of its own. */
async function sendBatch(call: DialectCall) {
  const list = check(z.array(z.unknown(), { error: 'must be a list of emails' }), call.body);
  if (list.length > maxBatch)
    throw new Refusal(
      'BAD_REQUEST',
      `A batch can have at most ${maxBatch} emails, and this has ${list.length}.`,
    );
  const limited = limitConcurrency(atOnce);
  return Promise.all(
    list.map((one, position) =>
      limited(() => send(call, one, position)).catch((error) => {
        if (!(error instanceof Refusal)) throw error;
        if (error.code === 'SEND_FAILED') call.onError('an email of a batch failed', error.cause);
        return postmarkError(error);
      }),
    ),
  );
}

async function refuseTemplate(): Promise<never> {
  throw new Refusal(
    'BAD_REQUEST',
    'Postern has no templates. Make the text in your application, and send HtmlBody or TextBody to /email.',
  );
}

function fieldsOf(email: PostmarkEmail): DialectSend {
  const { Headers, Tag, Metadata, TrackOpens, TrackLinks } = email;
  return {
    from: email.From,
    to: mailboxesIn(email.To, 'To'),
    cc: mailboxesIn(email.Cc, 'Cc'),
    bcc: mailboxesIn(email.Bcc, 'Bcc'),
    replyTo: mailboxesIn(email.ReplyTo, 'ReplyTo'),
    subject: email.Subject,
    html: email.HtmlBody ?? undefined,
    text: email.TextBody ?? undefined,
    headers: Headers ? Object.fromEntries(Headers.map(({ Name, Value }) => [Name, Value])) : undefined,
    // The webhooks and messages of this dialect read Tag there.
    tags: { ...Metadata, ...(Tag && { tag: Tag }) },
    attachments: email.Attachments?.map(attachmentOf),
    tracking: {
      ...(typeof TrackOpens === 'boolean' && { openTracking: TrackOpens }),
      ...(TrackLinks && { clickTracking: TrackLinks.startsWith('Html') }),
    },
    scheduledAt: undefined,
  };
}

function attachmentOf({ Name, Content, ContentType, ContentID }: Record<string, unknown>) {
  return {
    filename: Name || 'attachment',
    content: Content,
    ...(ContentType ? { contentType: ContentType } : {}),
    ...(ContentID ? { contentId: String(ContentID).replace(/^cid:/i, '') } : {}),
  };
}
