/** SendGrid's unsubscribe groups are our streams that people subscribe to: a group's number follows from the stream's name. */
import { z } from 'zod';
import { alterStream, deleteStream, makeStream } from '#accounts/manage-streams.ts';
import { listStreams, type Stream } from '#accounts/rows/streams.ts';
import { countSuppressions } from '#accounts/rows/suppressions.ts';
import { type DialectCall, type DialectRoute, plainAddress, requireItem } from '#front/dialects/dialect.ts';
import { findStreamByNumber } from '#front/dialects/dialect-streams.ts';
import {
  findSuppressed,
  listSuppressed,
  suppressAll,
  unsuppress,
} from '#front/dialects/dialect-suppressions.ts';
import { jsonBody, noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { unsubscribedReason } from '#mail/record/rows/unsubscribes.ts';
import { streamNumber } from '#platform/values/stream.ts';

const grant = 'full_access';
const groups = '/v3/asm/groups';
/** A thousand addresses. */
const addressBody = jsonBody({ largest: 1024 * 1024, members: 3_000 });

export const sendgridGroupRoutes: DialectRoute[] = [
  { route: `GET ${groups}`, grant, respond: list },
  { route: `POST ${groups}`, grant, body: smallJson, respond: create },
  { route: `GET ${groups}/:group`, grant, respond: async (call) => present(call, await find(call)) },
  { route: `PATCH ${groups}/:group`, grant, body: smallJson, respond: change },
  { route: `DELETE ${groups}/:group`, grant, body: noBody, respond: remove },
  { route: `GET ${groups}/:group/suppressions`, grant, respond: listAddresses },
  { route: `POST ${groups}/:group/suppressions`, grant, body: addressBody, respond: addAddresses },
  { route: `DELETE ${groups}/:group/suppressions/:email`, grant, body: noBody, respond: removeAddress },
];

async function list(call: DialectCall) {
  const streams = await listStreams(call.db, call.orgId);
  return Promise.all(streams.map((stream) => present(call, stream)));
}

async function present({ db, orgId }: DialectCall, { name, title }: Stream) {
  return {
    id: streamNumber(name),
    name,
    description: title,
    is_default: false,
    unsubscribes: await countSuppressions(db, orgId, name),
  };
}

async function find(call: DialectCall): Promise<Stream> {
  return requireItem(await findStreamByNumber(call, Number(call.params.group)), 'group');
}

const group = z.object({
  name: z.string().min(1).max(30).optional(),
  description: z.string().max(100).optional(),
});

/** Groups have names for people: ours is made of it. */
async function create(call: DialectCall) {
  const { name = '', description } = checked(group, call.body);
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  const wanted = { orgId: call.orgId, name: slug, title: description || name, kind: 'subscribed' } as const;
  const stream = await makeStream(call.db, wanted, call.now);
  call.context.status = 201;
  return present(call, stream);
}

async function change(call: DialectCall) {
  const { description } = checked(group, call.body);
  return present(
    call,
    await alterStream(call.db, await find(call), description ? { title: description } : {}),
  );
}

async function remove(call: DialectCall) {
  await deleteStream(call.db, await find(call));
  call.context.status = 204;
  return null;
}

const maxListed = 50_000;

async function listAddresses(call: DialectCall) {
  const { name: stream } = await find(call);
  const { found } = await listSuppressed({ ...call, stream }, { limit: maxListed });
  return found.map(({ address }) => address);
}

const addresses = z.object({ recipient_emails: z.array(plainAddress).min(1).max(1000) });

async function addAddresses(call: DialectCall) {
  const { name: stream } = await find(call);
  const { recipient_emails } = checked(addresses, call.body);
  const entries = recipient_emails.map((address) => ({ address, reason: unsubscribedReason }));
  await suppressAll({ ...call, stream }, entries);
  call.context.status = 201;
  return { recipient_emails };
}

async function removeAddress(call: DialectCall) {
  const { name: stream } = await find(call);
  const found = requireItem(
    await findSuppressed({ ...call, stream }, call.params.email!),
    'address in the group',
  );
  await unsuppress({ ...call, stream }, found.address);
  call.context.status = 204;
  return null;
}
