/** Postmark's `POST /email` and `POST /email/batch`. */
import { z } from 'zod';
import { type DialectCall, type DialectRoute, fileName, pairs, scalarText } from '#front/dialects/dialect.ts';
import {
  type DialectSend,
  idempotencyKeyOf,
  idempotencyOfSend,
  requestOf,
  type SendTerms,
} from '#front/dialects/dialect-send.ts';
import { acceptSeveral } from '#front/dialects/several-emails.ts';
import { below, jsonBody, largestBody, largestContent, noBody } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { byReference } from '#mail/compose/content-ids/content-ids.ts';
import { withReferences } from '#mail/compose/content-ids/references.ts';
import { iso } from '#platform/base/clock.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { addressesIn, mailboxesIn, maxAddresses } from './postmark-addresses.ts';
import { allInactive, postmarkError, someInactive } from './postmark-errors.ts';
import { inAnyCase } from './postmark-query.ts';
import { sentIn } from './postmark-stream.ts';

/** Generous: our own rules say more exactly what is wrong. */
const lists = { Headers: 1_000, Metadata: 1_000, Attachments: 1_000 };
const texts = {
  HtmlBody: largestContent,
  TextBody: largestContent,
  'Attachments.*.Content': largestBody,
};
const emailBody = jsonBody({ largest: largestBody, members: 10_000, lists, texts, anyCase: true });
const batchBody = jsonBody({
  largest: largestBody,
  members: 50_000,
  lists: { ...below('*', lists), '': 1_000 },
  texts: below('*', texts),
  anyCase: true,
});

const grant = 'email:send';

export const postmarkSendRoutes: DialectRoute[] = [
  { route: 'POST /email', grant, body: emailBody, respond: (call) => send(call, call.body) },
  { route: 'POST /email/batch', grant, body: batchBody, respond: sendBatch },
  { route: 'POST /email/withTemplate', grant, body: noBody, respond: refuseTemplate },
  { route: 'POST /email/batchWithTemplates', grant, body: noBody, respond: refuseTemplate },
];

const maxBatch = 500;

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
    filename: 'Name',
    content: 'Content',
    contentType: 'ContentType',
    contentId: 'ContentID',
    attachments: 'Attachments',
  },
};

const optionalText = z.string().nullish();

const attachment = inAnyCase({
  Name: z.unknown().optional(),
  // Postmark refuses empty files.
  Content: z
    .unknown()
    .refine((content) => content !== '', 'must not be empty')
    .optional(),
  ContentType: z.unknown().optional(),
  ContentID: z.unknown().optional(),
});

/** The members that our own rules do not check; those say what is wrong in the others. */
const request = inAnyCase({
  From: z.unknown().optional(),
  To: optionalText,
  Cc: optionalText,
  Bcc: optionalText,
  ReplyTo: optionalText,
  Subject: z.unknown().optional(),
  HtmlBody: z.unknown().optional(),
  TextBody: z.unknown().optional(),
  Tag: scalarText.nullish(),
  Metadata: pairs.nullish(),
  Headers: z.array(inAnyCase({ Name: scalarText, Value: z.unknown().optional() })).nullish(),
  TrackOpens: z.boolean().nullish(),
  TrackLinks: z.enum(['None', 'HtmlAndText', 'HtmlOnly', 'TextOnly']).nullish(),
  MessageStream: scalarText.nullish(),
  Attachments: z.array(attachment).nullish(),
  TemplateId: z.unknown().optional(),
  TemplateAlias: z.unknown().optional(),
});

type PostmarkEmail = z.output<typeof request>;

async function send(call: DialectCall, body: unknown, position?: number) {
  const email = checked(request, body);
  if (email.TemplateId || email.TemplateAlias) return refuseTemplate();
  const stream = await sentIn(call, email.MessageStream);
  const fields = fieldsOf(email);
  const compared = stream === undefined ? fields : { ...fields, stream };
  const idempotency = idempotencyOfSend(idempotencyKeyOf(call), compared, position);
  const toSend = { ...requestOf(call, fields, terms, idempotency), stream };
  const { answer } = await call.accept(toSend, call.caller).catch((error) => {
    const isInactive = error instanceof Refusal && error.code === 'ALL_RECIPIENTS_SUPPRESSED';
    throw isInactive ? allInactive(addressesOf(email)) : error;
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

function addressesOf({ To, Cc, Bcc }: PostmarkEmail): string[] {
  const lists = [addressesIn(To ?? '', 'To'), addressesIn(Cc ?? '', 'Cc'), addressesIn(Bcc ?? '', 'Bcc')];
  return [...new Set(lists.flat().map(({ address }) => address))];
}

/** A batch is answered 200 whatever becomes of its emails: each has an error of its own. */
async function sendBatch(call: DialectCall) {
  const list = checked(z.array(z.unknown(), { error: 'must be a list of emails' }), call.body);
  if (list.length > maxBatch)
    throw new Refusal(
      'BAD_REQUEST',
      `A batch can have at most ${maxBatch} emails, and this has ${list.length}.`,
    );
  const results = await acceptSeveral({
    count: list.length,
    accept: (position) => send(call, list[position], position),
    afterRefusal: 'accept the others',
  });
  return results.map((one) => {
    if (!(one instanceof Refusal)) return one;
    if (one.code === 'SEND_FAILED') call.onError('an email of a batch failed', one.cause);
    return postmarkError(one, list.length);
  });
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
    headers: Headers ? headersIn(Headers) : undefined,
    // The webhooks and messages of this dialect read Tag there.
    tags: { ...Metadata, ...(Tag && { tag: Tag }) },
    attachments: email.Attachments ? attachmentsOf(email.Attachments, email.HtmlBody) : undefined,
    tracking: {
      ...(typeof TrackOpens === 'boolean' && { openTracking: TrackOpens }),
      ...(TrackLinks && { clickTracking: TrackLinks.startsWith('Html') }),
    },
    scheduledAt: undefined,
  };
}

/** Ruby's SDK also sends those that describe the MIME parts of its own message, which is not the one that is sent. */
function headersIn(list: { Name: string; Value?: unknown }[]) {
  const wanted = list.filter(({ Name }) => !/^(mime-version|content-.*)$/i.test(Name));
  const headers = new Map<string, unknown>();
  for (const { Name, Value } of wanted) {
    if (headers.has(Name) && headers.get(Name) !== Value)
      throw new Refusal('BAD_REQUEST', `Headers: ${Name} is given twice, with different values.`);
    headers.set(Name, Value);
  }
  return Object.fromEntries(headers);
}

function attachmentsOf(list: z.output<typeof attachment>[], html: unknown) {
  const ids = list.map(idOf).filter((id) => id !== '');
  const shown = typeof html === 'string' && ids.length > 0 ? shownIn(html, ids) : new Set<string>();
  return list.map((one) => attachmentOf(one, shown));
}

function idOf({ ContentID }: z.output<typeof attachment>): string {
  return typeof ContentID === 'object' ? '' : String(ContentID ?? '');
}

/** Longer HTML is not tokenized here, where other requests wait. */
const longestSearched = 1024 * 1024;

/** The ids of the files that the HTML shows. */
function shownIn(html: string, ids: string[]): Set<string> {
  const shown = new Set(idsIn(html));
  const others = ids.filter((id) => !shown.has(id) && !prefix.test(id));
  if (others.length === 0 || html.length > longestSearched) return shown;
  const idNamed = byReference(new Map(others.map((id) => [id, id])));
  withReferences(html, (reference) => {
    const id = idNamed(reference);
    if (id !== undefined) shown.add(id);
    return undefined;
  });
  return shown;
}

/** In `cid:` URLs anywhere, for ids without a character that ends one in HTML or CSS. */
function* idsIn(html: string): Generator<string> {
  for (const [, id] of html.matchAll(/cid:([^\s"'<>()]{1,255})/g)) yield id!;
}

const prefix = /^cid:/i;

/** PHP's SDK gives each file its name for an id: that of a file that the HTML does not show means nothing. */
function attachmentOf(one: z.output<typeof attachment>, shown: ReadonlySet<string>) {
  const { Name, Content, ContentType } = one;
  const given = idOf(one);
  const id = given.replace(prefix, '');
  const isShown = id !== '' && (id !== given || shown.has(id));
  return {
    filename: fileName(Name, ContentType),
    content: Content,
    ...(ContentType ? { contentType: ContentType } : {}),
    ...(isShown && { contentId: id }),
  };
}
