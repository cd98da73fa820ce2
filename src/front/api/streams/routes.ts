/** /api/public/streams: the streams of an organization's mail. */

import { alterStream, deleteStream, makeStream, streamDocument } from '#accounts/manage-streams.ts';
import { findStream, listStreams } from '#accounts/rows/streams.ts';
import { pathParameter } from '#front/api/endpoint.ts';
import { answer, doneAnswer, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { isStreamName, maxStreams } from '#platform/values/stream.ts';
import { newStream, streamChange, streamSchemas } from './schema.ts';

const { StreamAnswer, StreamsAnswer } = streamSchemas;

const streams = resource('Streams', {
  noun: 'stream',
  parameter: pathParameter('stream', 'The name of the stream.', 'newsletter'),
  invalid: 'The name in the path is not the name of a stream.',
  parse: (text) => (isStreamName(text) ? text : null),
  find: findStream,
});

export const streamEndpoints = [
  streams.collection({
    route: 'GET /streams',
    operationId: 'listStreams',
    summary: 'List streams',
    description: 'The streams, without `transactional`, in which all mail is that has no other.',
    response: answer('The streams.', StreamsAnswer),
    respond: async ({ db, orgId }) => ({ streams: (await listStreams(db, orgId)).map(streamDocument) }),
  }),
  streams.collection({
    route: 'POST /streams',
    operationId: 'createStream',
    summary: 'Create a stream',
    description: `Creates a stream, which a send or a key can then name. An organization can have ${maxStreams} beside \`transactional\`.`,
    body: newStream,
    response: answer('The stream.', StreamAnswer),
    errors: {
      VALIDATION_ERROR: true,
      BAD_REQUEST: `The organization has a stream of this name, or ${maxStreams} of them, or the body is not JSON.`,
    },
    async respond({ db, orgId, body: { tracking, ...body }, now }) {
      return { stream: streamDocument(await makeStream(db, { orgId, ...body, ...tracking }, now)) };
    },
  }),
  streams.item({
    route: 'GET /streams/{stream}',
    operationId: 'getStream',
    summary: 'Show a stream',
    description: 'A stream with its settings.',
    response: answer('The stream.', StreamAnswer),
    respond: async ({ found }) => ({ stream: streamDocument(found) }),
  }),
  streams.item({
    route: 'PATCH /streams/{stream}',
    operationId: 'changeStream',
    summary: 'Change a stream',
    description:
      'Sets the title, the kind, the tracking, the limit or the color of a stream. Its name stays.',
    body: streamChange,
    response: answer('The changed stream.', StreamAnswer),
    errors: { VALIDATION_ERROR: true },
    respond: async ({ db, found, body: { tracking, ...body } }) => ({
      stream: streamDocument(await alterStream(db, found, { ...body, ...tracking })),
    }),
  }),
  streams.item({
    route: 'DELETE /streams/{stream}',
    body: noBody,
    operationId: 'removeStream',
    summary: 'Remove a stream',
    description:
      'Removes a stream. Mail of it that waits is still sent. Who unsubscribed from it stays so if a stream of its name is created again.',
    response: doneAnswer('The stream is removed.'),
    errors: {
      BAD_REQUEST: 'The name in the path is not the name of a stream, or the stream is that of a key.',
    },
    async respond({ db, found }) {
      await deleteStream(db, found);
      return {};
    },
  }),
];
