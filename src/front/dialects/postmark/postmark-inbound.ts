/** Postmark's inbound messages: a list, and one with its text. */
import { z } from 'zod';
import { findOwnReceived, readRaw } from '#front/api/received/find-received-mail.ts';
import { type DialectCall, type DialectRoute, requireById } from '#front/dialects/dialect.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { listReceived } from '#mail/received/rows/received-mails.ts';
import {
  postmarkAttachment,
  postmarkMembers,
  postmarkTexts,
} from '#mail/webhooks/received/postmark-received.ts';
import { pageOf } from './postmark-query.ts';

const grant = 'received:read';

export const postmarkInboundRoutes: DialectRoute[] = [
  { route: 'GET /messages/inbound', grant, respond: list },
  { route: 'GET /messages/inbound/:id/details', grant, respond: details },
];

/** Lists are read from their beginning, because Postmark's pages are numbers. */
const maxListed = 1000;

/** The filters are those that the rows answer; a name that is not here is named in the response. */
const filters = { status: z.string().optional() };

/** `TotalCount` is what lies before this page and in it, and one more if there are others. */
async function list({ db, orgId, caller, context }: DialectCall) {
  const { count, offset } = pageOf(context, filters);
  const wanted = Math.min(offset + count + 1, maxListed);
  const found = await listReceived(db, orgId, { limit: wanted, onlyTest: caller.isTest });
  const page = found.slice(offset, offset + count);
  return {
    TotalCount: found.length,
    InboundMessages: page.map((mail) => ({ ...members(mail), Attachments: attachmentsOf(mail) })),
  };
}

function members(mail: ReceivedMail, content: Parameters<typeof postmarkMembers>[1] = null) {
  return { ...postmarkMembers(mail, content), Status: 'Processed' };
}

const attachmentsOf = ({ summary }: ReceivedMail) =>
  summary.attachments.map((one) => ({ ...postmarkAttachment(one), Content: '' }));

async function details(call: DialectCall) {
  const { db, orgId, caller, context, params } = call;
  const mail = await requireById(params.id!, (id) => findOwnReceived(db, id, orgId, caller), 'message');
  const content = await call.receivedReading.content(orgId, await readRaw(context, db, mail));
  const { text = '', html = null, reply = '' } = content ?? {};
  return {
    ...members(mail, content),
    ...postmarkTexts(mail, content, { text, html: html ?? '', reply }),
    BlockedReason: '',
    Attachments: attachmentsOf(mail),
  };
}
