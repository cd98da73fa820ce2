/**
 * Postmark's bounces: our events of refused mail, of mail that was given up, and of complaints. A bounce's id is its event's
 * position, as in Postmark's webhooks and in the details of a message.
 */
import { z } from 'zod';
import { noBody } from '../../api/body-limits.ts';
import { compareKey } from '../../mail/address.ts';
import { emailEventOf } from '../../webhooks/formats/email-event.ts';
import { postmarkBounce, postmarkBounces } from '../../webhooks/formats/postmark-format.ts';
import { type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import type { StoredEvent } from '../dialect-store.ts';
import { unsuppress } from '../dialect-suppressions.ts';
import { fromDate, pageOf, toDate, tooMany } from './postmark-query.ts';
import { checkStream } from './postmark-stream.ts';

const grant = 'email:read';

export const postmarkBounceRoutes: DialectRoute[] = [
  { route: 'GET /bounces', grant, respond: list },
  { route: 'GET /bounces/:id', grant, respond: async (call) => (await present(call, [await find(call)]))[0] },
  { route: 'GET /bounces/:id/dump', grant, respond: dump },
  { route: 'PUT /bounces/:id/activate', grant: 'full_access', body: noBody, respond: activate },
  { route: 'GET /deliverystats', grant, respond: deliveryStats },
];

const types = ['email.bounced', 'email.expired', 'email.complained'];

const filters = {
  type: z.string().optional(),
  inactive: z.stringbool().optional(),
  emailfilter: z.string().toLowerCase().optional(),
  tag: z.string().optional(),
  messageid: z.string().toLowerCase().optional(),
  fromdate: fromDate.optional(),
  todate: toDate.optional(),
  messagestream: z.string().optional(),
};

type Filters = z.output<z.ZodObject<typeof filters>>;

/** `TotalCount` is what lies before this page and in it, and one more if there are others, as with messages. */
async function list(call: DialectCall) {
  const { filters: wanted, count, offset } = pageOf(call.context, filters);
  checkStream(wanted.messagestream);
  const found: Presented[] = [];
  for await (const bounce of newestFirst(call, wanted)) {
    found.push(bounce);
    if (found.length > offset + count) break;
  }
  return { TotalCount: found.length, Bounces: found.slice(offset, offset + count) };
}

const pageSize = 500;
/** Each read looks at a bounded number of events. */
const maxReads = 200;
/** Events are stored in an order that is only roughly that of their times. */
const skewMs = 60_000;

async function* newestFirst(call: DialectCall, wanted: Filters): AsyncGenerator<Presented> {
  const { store, orgId } = call;
  const { fromdate: from = 0, todate: to } = wanted;
  let before =
    to === undefined ? Number.MAX_SAFE_INTEGER : (await store.positionBefore(orgId, to + 2 * skewMs)) + 1;
  for (let reads = 0; reads < maxReads; reads += 1) {
    const page = await store.readEventsBefore({ orgId, before, limit: pageSize, types });
    const within = page.events.filter(({ at }) => at >= from && (to === undefined || at < to));
    yield* (await present(call, within)).filter((bounce) => isWanted(bounce, wanted));
    before = page.position;
    if (!page.isMore || (page.events.at(-1)?.at ?? from) < from - skewMs) return;
  }
  throw tooMany('bounces');
}

function isWanted(bounce: Presented, { type, inactive, emailfilter, tag, messageid }: Filters): boolean {
  if (type !== undefined && bounce.Type !== type) return false;
  if (inactive !== undefined && bounce.Inactive !== inactive) return false;
  if (emailfilter !== undefined && !bounce.Email.toLowerCase().includes(emailfilter)) return false;
  if (tag !== undefined && bounce.Tag !== tag) return false;
  return messageid === undefined || bounce.MessageID === messageid;
}

type Presented = Awaited<ReturnType<typeof present>>[number];

/** `Inactive`: the address is on the suppression list now. */
async function present({ store, orgId }: DialectCall, events: StoredEvent[]) {
  const bounces = events.map(emailEventOf).map((email) => ({ email, bounce: postmarkBounce(email) }));
  const inactive = await store.suppressedAmong(
    orgId,
    bounces.map(({ bounce }) => compareKey(bounce.Email)),
  );
  return bounces.map(({ email, bounce }) => {
    const isInactive = inactive.has(compareKey(bounce.Email));
    return { ...bounce, DumpAvailable: email.attempt > 0, Inactive: isInactive, CanActivate: isInactive };
  });
}

async function find({ store, orgId, params }: DialectCall): Promise<StoredEvent> {
  const position = /^\d{1,15}$/.test(params.id!) ? Number(params.id) : 0;
  const page = position > 0 ? await store.readEvents({ orgId, after: position - 1, limit: 1 }) : null;
  const event = page?.events.find((one) => one.position === position && types.includes(one.type));
  return requireItem(event ?? null, 'bounce');
}

/** The conversation that ended with the bounce; empty if there was none, or it is no longer kept. */
async function dump(call: DialectCall) {
  const { emailId, recipient, attempt } = emailEventOf(await find(call));
  const transcript = attempt > 0 ? await call.store.transcriptOf(emailId, { recipient, attempt }) : [];
  return { Body: transcript.map(({ from, text }) => `${marks[from]}${text}\r\n`).join('') };
}

const marks = { client: '> ', server: '< ', note: '' };

async function activate(call: DialectCall) {
  const event = await find(call);
  await unsuppress(call, emailEventOf(event).recipient);
  return { Message: 'OK', Bounce: (await present(call, [event]))[0] };
}

/** All that was refused counts as a hard bounce, and all that was given up as a soft one: the statistics have no reasons. */
async function deliveryStats({ store, orgId }: DialectCall) {
  const { bounced, expired, complained, suppressed } = await store.countBounces(orgId);
  const Bounces = [
    { Name: 'All', Type: 'All', TypeCode: 0, Count: bounced + expired + complained },
    { ...postmarkBounces.hard, Count: bounced },
    { ...postmarkBounces.soft, Count: expired },
    { ...postmarkBounces.complaint, Count: complained },
  ];
  return {
    InactiveMails: suppressed,
    Bounces: Bounces.filter(({ Type, Count }) => Type === 'All' || Count > 0).map(
      ({ Name, Type, TypeCode, Count }) => ({ Name, Type, TypeCode, Count }),
    ),
  };
}
