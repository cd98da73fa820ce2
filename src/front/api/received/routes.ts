/** /api/public/received: the mail that an organization's domains have received, for as long as it is kept. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { exampleId, pathParameter } from '#front/api/endpoint.ts';
import {
  answer,
  byId,
  type Management,
  managementEndpoint,
  readPage,
  requireFound,
  resource,
} from '#front/api/management.ts';
import { uuidIn } from '#front/http/query.ts';
import { outwardReceived, outwardSummary } from '#mail/received/outward-received.ts';
import { linksTo } from '#mail/received/received-links.ts';
import { listReceived } from '#mail/received/rows/received-mails.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { answerFile } from './answer-file.ts';
import { findOwnReceived, partOf, readRaw } from './find-received-mail.ts';
import { linkedOrganization } from './linked-organization.ts';
import { receivedQuery, receivedSchemas } from './schema.ts';

const tag = 'Received mail';
const scope = 'received:read';
const noun = 'received mail';
const mails = resource(tag, byId(noun, findOwnReceived, 'The id of the received mail.'), scope);

/** Of an answer in bytes. A longer text is read by its link. */
const maxAnswer = 4 * 1024 * 1024;

const idParameter = pathParameter('id', 'The id of the received mail.', exampleId, 'uuid');
const position = pathParameter('position', 'The position of the attachment, from 0.', '0');

/** A part of a mail as a file. */
function download(declared: Parameters<typeof managementEndpoint>[1]) {
  const errors = {
    BAD_REQUEST: 'The id in the path is not a UUID.',
    NOT_FOUND:
      'The mail does not exist, has been deleted because of its age, or belongs to another organization.',
  };
  return managementEndpoint(tag, { ...declared, errors }, scope);
}

export const receivedEndpoints = [
  mails.collection({
    route: 'GET /received',
    operationId: 'listReceived',
    summary: 'List received mail',
    description: 'The mail that your domains have received, newest first; to a test key, test mail.',
    query: receivedQuery,
    response: answer('A page of received mail.', receivedSchemas.ReceivedMails),
    async respond({ db, orgId, caller, query }) {
      const { page, next } = await readPage(query, ({ after: before, limit }) =>
        listReceived(db, orgId, { before, limit, onlyTest: caller.isTest }),
      );
      return { mails: page.map(outwardSummary), next };
    },
  }),
  mails.item({
    route: 'GET /received/{id}',
    operationId: 'getReceived',
    summary: 'Show a received mail',
    description:
      'The mail with its text, HTML, headers and attachments. The URLs of its parts need no key and work for a day. What is ' +
      'too long for one answer is null and named in `omitted`; the URL leads to it.',
    response: answer('The mail.', receivedSchemas.ReceivedMail),
    async respond({ context, db, found, now, receivedReading, receivedLinks }) {
      const raw = await readRaw(context, db, found);
      const content = await receivedReading.content(found.orgId, raw);
      return { mail: outwardReceived(found, content, linksTo(found, receivedLinks, now), maxAnswer) };
    },
  }),
  download({
    route: 'GET /received/{id}/raw',
    operationId: 'getReceivedRaw',
    summary: 'Download a received mail',
    description:
      'The mail as it came, after the header fields `Received` and `Authentication-Results` of this server.',
    parameters: [idParameter],
    response: { description: 'The mail.', content: { 'message/rfc822': z.string() } },
    handler: (parts) => withKey(parts, () => 'raw'),
  }),
  download({
    route: 'GET /received/{id}/attachments/{position}',
    operationId: 'getReceivedAttachment',
    summary: 'Download an attachment',
    description: 'An attachment of a received mail, decoded. Its type is the one that the sender gave.',
    parameters: [idParameter, position],
    response: { description: 'The attachment.', content: { 'application/octet-stream': z.string() } },
    handler: (parts) =>
      withKey(parts, ({ params }) => (/^\d+$/.test(params.position) ? params.position : '')),
  }),
  {
    ...managementEndpoint(
      tag,
      {
        route: 'GET /received/{id}/parts/{part}',
        operationId: 'getReceivedPart',
        summary: 'Follow a link to a part of a received mail',
        description:
          'What the URLs in received mail and in its webhooks lead to. They need no key, and work for a day.',
        parameters: [
          idParameter,
          pathParameter('part', '`raw`, `text`, `html`, or the position of an attachment.', 'raw'),
        ],
        response: { description: 'The part.', content: { 'application/octet-stream': z.string() } },
        handler: byLink,
      },
      scope,
    ),
    scopes: [],
    errors: { NOT_FOUND: 'The link is not valid, or it has expired.', SEND_FAILED: true as const },
  },
];

function withKey(parts: Management, partIn: (context: Context) => string): Middleware {
  return async (context) => {
    const caller = await parts.authorize.enter(context, scope);
    const id = uuidIn(context.params.id);
    if (id === null) throw new Refusal('BAD_REQUEST', 'The id in the path is not a UUID.');
    const mail = requireFound(await findOwnReceived(parts.db, id, caller.orgId, caller), noun);
    const raw = await readRaw(context, parts.db, mail);
    const part = await partOf(parts.receivedReading, mail, raw, partIn(context));
    context.body = answerFile(context, requireFound(part, 'attachment'));
  };
}

function byLink({ db, clock, receivedLinks, receivedReading }: Management): Middleware {
  return async (context) => {
    const { id: given, part } = context.params;
    const id = uuidIn(given);
    const link = { mailId: id ?? '', id: part };
    const orgId = id && (await linkedOrganization(db, receivedLinks, link, context.query, clock.now()));
    const mail = orgId && (await findOwnReceived(db, id, orgId, { isTest: false }));
    const file = mail && (await partOf(receivedReading, mail, await readRaw(context, db, mail), part));
    if (!file) throw new Refusal('NOT_FOUND', 'The link is not valid, or it has expired. Ask for a new one.');
    context.body = answerFile(context, file);
  };
}
