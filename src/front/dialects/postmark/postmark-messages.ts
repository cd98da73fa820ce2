/** Postmark's outbound messages: a search, one with its events, and its source. */
import { z } from 'zod';
import { type DialectCall, type DialectRoute, plainAddress, requireById } from '#front/dialects/dialect.ts';
import { readMessage } from '#front/dialects/serve-files.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { readEvents } from '#mail/record/rows/read-events.ts';
import { type SearchPage, searchEmails } from '#mail/record/rows/search-emails.ts';
import { type EmailEvent, emailEventOf, replyText } from '#mail/webhooks/formats/email-event.ts';
import { iso } from '#platform/base/clock.ts';
import { compareKey, parseMailbox } from '#platform/values/address.ts';
import type { DeliveryStatus, RecipientKind } from '#platform/values/glossary.ts';
import { isFinal } from '#platform/values/states.ts';
import { postmarkStreamOf } from '#platform/values/stream.ts';
import { fromDate, metadata as metadataPrefix, pageOf, queryIn, toDate, tooMany } from './postmark-query.ts';
import { streamOf } from './postmark-stream.ts';

const grant = 'email:read';

export const postmarkMessageRoutes: DialectRoute[] = [
  { route: 'GET /messages/outbound', grant, respond: list },
  { route: 'GET /messages/outbound/:id/details', grant, respond: details },
  { route: 'GET /messages/outbound/:id/dump', grant, respond: dump },
];

/** Each looks at a bounded number of emails. */
const maxSearches = 100;
const minSearched = 250;

const address = plainAddress.transform(compareKey);

const filters = {
  recipient: address.optional(),
  fromemail: address.optional(),
  subject: z.string().optional(),
  tag: z.string().optional(),
  status: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['queued', 'sent', 'processed']))
    .optional(),
  fromdate: fromDate.optional(),
  todate: toDate.optional(),
  messagestream: z.string().optional(),
};

async function searchOf(call: DialectCall) {
  const { orgId, caller, context } = call;
  const { filters: wanted, ...page } = pageOf(context, filters);
  const { recipient: to, fromemail: from, tag, subject, status, fromdate: since, todate: until } = wanted;
  const stream = wanted.messagestream === undefined ? undefined : await streamOf(call, wanted.messagestream);
  const metadata = Object.entries(queryIn(context, [metadataPrefix])).flatMap(([name, value]) =>
    name.startsWith('metadata_') ? [[name.slice('metadata_'.length), value]] : [],
  );
  const search = {
    orgId,
    onlyTest: caller.isTest,
    tags: { ...Object.fromEntries(metadata), ...(tag !== undefined && { tag }) },
    ...(to !== undefined && { to }),
    ...(from !== undefined && { from }),
    ...(subject !== undefined && { contains: { subject } }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
  return { search, status, stream, ...page };
}

/** `TotalCount` is what lies before this page and in it, and one more if there are others: nothing counts them. */
async function list(call: DialectCall) {
  const { search, count, offset, status, stream } = await searchOf(call);
  const wanted = status && (status === 'queued' ? 'Queued' : 'Sent');
  const found = [];
  let after: string | null = null;
  for (let searches = 0; searches < maxSearches && found.length <= offset + count; searches += 1) {
    const page: SearchPage = await searchEmails(call.db, {
      ...search,
      ...(after !== null && { after }),
      limit: Math.max(offset + count + 1 - found.length, minSearched),
    });
    for (const email of page.emails) {
      const isWanted = stream === undefined || email.stream === stream;
      if (isWanted && (!wanted || statusOf(email.recipients) === wanted)) found.push(email);
    }
    after = page.next;
    if (after === null) break;
  }
  if (after !== null && found.length <= offset + count) throw tooMany('messages');
  const rows = found.slice(offset, offset + count);
  const isMore = found.length > offset + count;
  return {
    TotalCount: Math.min(offset, found.length) + rows.length + (isMore ? 1 : 0),
    Messages: rows.map((email) =>
      present({ ...email, recipients: email.recipients.map((one) => ({ ...one, name: '' })) }),
    ),
  };
}

interface Shown {
  id: string;
  from: string;
  subject: string;
  tags: Record<string, string>;
  stream: string | null;
  createdAt: number;
  tracking: { openTracking: boolean; clickTracking: boolean };
  recipients: { address: string; name: string; kind: RecipientKind; status: DeliveryStatus }[];
}

function statusOf(recipients: { status: DeliveryStatus }[]): 'Sent' | 'Queued' {
  return recipients.every(({ status }) => isFinal(status)) ? 'Sent' : 'Queued';
}

function present({ id, from, subject, tags, stream, createdAt, tracking, recipients }: Shown) {
  const { tag = '', ...metadata } = tags;
  const of = (wanted: RecipientKind) =>
    recipients.flatMap(({ kind, address: Email, name: Name }) => (kind === wanted ? [{ Email, Name }] : []));
  return {
    Tag: tag,
    MessageID: id,
    MessageStream: postmarkStreamOf(stream),
    To: of('to'),
    Cc: of('cc'),
    Bcc: of('bcc'),
    Recipients: recipients.map((one) => one.address),
    ReceivedAt: iso(createdAt),
    From: from,
    Subject: subject,
    Attachments: [],
    Status: statusOf(recipients),
    TrackOpens: tracking.openTracking,
    TrackLinks: tracking.clickTracking ? 'HtmlOnly' : 'None',
    Metadata: metadata,
    Sandboxed: false,
  };
}

function find({ db, orgId, caller, params }: DialectCall): Promise<EmailRecord> {
  return requireById(params.id!, (id) => findEmail(db, id, orgId, caller), 'message');
}

/** The events of one email, the oldest first. */
const maxEvents = 1000;

/** The bodies are not kept in parts: they are in the source, as long as that is kept. */
async function details(call: DialectCall) {
  const { db, orgId } = call;
  const email = await find(call);
  const { events } = await readEvents(db, { orgId, emailId: email.id, after: 0, limit: maxEvents });
  const message = await readMessage(call, email);
  const files = message && (await call.readFiles(orgId, message, null));
  const recipients = email.deliveries.map(({ recipient, kind, status }, index) => {
    const name = parseMailbox(email.recipients[index] ?? '')?.name ?? '';
    return { address: recipient, kind, status, name };
  });
  return {
    ...present({ ...email, recipients }),
    // Empty if the message is no longer kept.
    Attachments: files?.map(({ filename }) => filename ?? 'attachment') ?? [],
    TextBody: null,
    HtmlBody: null,
    Body: '',
    MessageEvents: events.map(emailEventOf).flatMap(presentEvent),
  };
}

const presented: Record<string, (event: EmailEvent) => { Type: string; Details: object }> = {
  'email.delivered': (event) => ({ Type: 'Delivered', Details: transferOf(event) }),
  'email.deferred': (event) => ({ Type: 'Transient', Details: transferOf(event) }),
  'email.bounced': bounced,
  'email.expired': bounced,
  'email.opened': ({ userAgent }) => ({
    Type: 'Opened',
    Details: { Summary: `Email opened with ${userAgent}` },
  }),
  'email.clicked': ({ url }) => ({
    Type: 'LinkClicked',
    Details: { Summary: `Clicked ${url}`, Link: url, ClickLocation: 'HTML' },
  }),
};

function transferOf(event: EmailEvent) {
  const { host } = event;
  return {
    DeliveryMessage: replyText(event),
    DestinationServer: host?.host ?? '',
    DestinationIP: host?.address ?? '',
  };
}

/** The id is that of the webhook of the bounce. */
function bounced(event: EmailEvent) {
  return { Type: 'Bounced', Details: { Summary: replyText(event), BounceID: String(event.position) } };
}

function presentEvent(event: EmailEvent) {
  const shown = presented[event.type]?.(event);
  return shown ? [{ Recipient: event.recipient, ReceivedAt: iso(event.at), ...shown }] : [];
}

/** Empty if the source is no longer kept. */
async function dump(call: DialectCall) {
  const source = await readMessage(call, await find(call));
  call.context.type = 'json';
  // As bytes it waits for the client outside the heap.
  return Buffer.from(JSON.stringify({ Body: source?.toString() ?? '' }));
}
