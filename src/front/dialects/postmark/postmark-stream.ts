/**
 * Postmark's message streams, which are ours: `outbound` is the one without a name, `transactional`. Each of Postmark's servers
 * also has `broadcast` from the start, so the first mail to it makes it.
 */
import { z } from 'zod';
import { alterStream, deleteStream, makeStream } from '#accounts/manage-streams.ts';
import { findStream, listStreams, type Stream } from '#accounts/rows/streams.ts';
import type { DialectCall, DialectRoute } from '#front/dialects/dialect.ts';
import { requireKnownStream } from '#front/dialects/dialect-streams.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { iso } from '#platform/base/clock.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { defaultStream, postmarkStreamOf, streamOfPostmark } from '#platform/values/stream.ts';
import { inAnyCase, queryIn } from './postmark-query.ts';

const broadcast = 'broadcast';

/** The stream of a send; undefined: that of the key. */
export async function sentIn(
  call: DialectCall,
  name: string | null | undefined,
): Promise<string | undefined> {
  if (!name) return undefined;
  const stream = await streamOf(call, name);
  return stream ?? defaultStream;
}

/** As our rows have it. Refuses a stream that is not there. */
export async function streamOf(call: DialectCall, name: string | null | undefined): Promise<string | null> {
  const stream = streamOfPostmark(name);
  if (stream === null || (await findStream(call.db, call.orgId, stream))) return stream;
  if (stream === broadcast) {
    const wanted = { orgId: call.orgId, name: broadcast, title: 'Broadcasts', kind: 'subscribed' } as const;
    return (await makeStream(call.db, wanted, call.now)).name;
  }
  throw new Refusal(
    'BAD_REQUEST',
    `Postern has no message stream ${JSON.stringify(stream.slice(0, 100))}. Create it, leave MessageStream out, or give ${postmarkStreamOf(null)}.`,
  );
}

const grant = 'full_access';
const path = '/message-streams';

export const postmarkStreamRoutes: DialectRoute[] = [
  { route: `GET ${path}`, grant, respond: list },
  { route: `POST ${path}`, grant, body: smallJson, respond: create },
  { route: `GET ${path}/:stream`, grant, respond: async (call) => present(await find(call)) },
  { route: `PATCH ${path}/:stream`, grant, body: smallJson, respond: change },
  { route: `POST ${path}/:stream/archive`, grant, body: noBody, respond: archive },
];

const kinds = { Transactional: 'transactional', Broadcasts: 'subscribed' } as const;
type StreamType = keyof typeof kinds;
const types = Object.keys(kinds) as StreamType[];

/** The stream that is there from the start. */
const outbound: Pick<Stream, 'name' | 'title' | 'kind' | 'createdAt'> = {
  name: postmarkStreamOf(null),
  title: 'Default Transactional Stream',
  kind: 'transactional',
  createdAt: 0,
};

function present({ name, title, kind, createdAt }: typeof outbound) {
  return {
    ID: name,
    ServerID: 1,
    Name: title,
    Description: '',
    MessageStreamType: types.find((type) => kinds[type] === kind),
    CreatedAt: iso(createdAt),
    UpdatedAt: null,
    ArchivedAt: null,
    ExpectedPurgeDate: null,
    SubscriptionManagementConfiguration: {
      UnsubscribeHandlingType: kind === 'subscribed' ? 'Postmark' : 'None',
    },
  };
}

async function list(call: DialectCall) {
  const { messagestreamtype: type = 'All' } = queryIn(call.context, [
    'messagestreamtype',
    'includearchivedstreams',
  ]);
  const all = [outbound, ...(await listStreams(call.db, call.orgId))].map(present);
  const MessageStreams = all.filter(({ MessageStreamType }) => type === 'All' || MessageStreamType === type);
  return { MessageStreams, TotalCount: MessageStreams.length };
}

async function find(call: DialectCall): Promise<typeof outbound> {
  const name = call.params.stream!;
  return streamOfPostmark(name) === null ? outbound : requireKnownStream(call, name);
}

const request = inAnyCase({
  ID: z.string().nullish(),
  Name: z.string().min(1).max(100).nullish(),
  MessageStreamType: z.enum(types).nullish(),
});

async function create(call: DialectCall) {
  const { ID, Name, MessageStreamType } = checked(request, call.body);
  if (!ID || !MessageStreamType)
    throw new Refusal('BAD_REQUEST', `ID and MessageStreamType (${types.join(' or ')}) are required.`);
  const wanted = { orgId: call.orgId, name: ID, title: Name ?? ID, kind: kinds[MessageStreamType] };
  return present(await makeStream(call.db, wanted, call.now));
}

async function change(call: DialectCall) {
  const { Name } = checked(request, call.body);
  const found = await requireKnownStream(call, call.params.stream!);
  return present(await alterStream(call.db, found, Name ? { title: Name } : {}));
}

/** It is gone at once; who unsubscribed is kept for a stream of its name. */
async function archive(call: DialectCall) {
  const found = await requireKnownStream(call, call.params.stream!);
  await deleteStream(call.db, found);
  return { ID: found.name, ServerID: 1, ExpectedPurgeDate: iso(call.now) };
}
