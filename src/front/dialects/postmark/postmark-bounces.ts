/**
 * Postmark's bounces: our events of refused mail, of mail that was given up, and of complaints. A bounce's id is its event's
 * position, as in Postmark's webhooks and in the details of a message.
 */
import { z } from 'zod';
import { countSuppressions, suppressedAmong, suppressionKey } from '#accounts/rows/suppressions.ts';
import { type DialectCall, type DialectRoute, requireItem } from '#front/dialects/dialect.ts';
import { unsuppress } from '#front/dialects/dialect-suppressions.ts';
import { eventPages } from '#front/dialects/event-pages.ts';
import { noBody } from '#front/http/body-limits.ts';
import { listAttempts } from '#mail/record/rows/emails.ts';
import { type EventRecord, readEvents } from '#mail/record/rows/read-events.ts';
import { readFigures } from '#mail/record/rows/statistics.ts';
import { emailEventOf } from '#mail/webhooks/formats/email-event.ts';
import { postmarkBounce, postmarkBounces } from '#mail/webhooks/formats/postmark-format.ts';
import { compareKey } from '#platform/values/address.ts';
import { postmarkStreamOf } from '#platform/values/stream.ts';
import { fromDate, pageOf, toDate, tooMany } from './postmark-query.ts';
import { streamOf } from './postmark-stream.ts';

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
  if (wanted.messagestream !== undefined)
    wanted.messagestream = postmarkStreamOf(await streamOf(call, wanted.messagestream));
  const found: Presented[] = [];
  for await (const bounce of newestFirst(call, wanted)) {
    found.push(bounce);
    if (found.length > offset + count) break;
  }
  return { TotalCount: found.length, Bounces: found.slice(offset, offset + count) };
}

async function* newestFirst(call: DialectCall, wanted: Filters): AsyncGenerator<Presented> {
  const { fromdate: since = 0, todate: to = Number.MAX_SAFE_INTEGER } = wanted;
  const until = to === Number.MAX_SAFE_INTEGER ? to : to - 1;
  for await (const page of eventPages(call, { types, since, until, isForward: false })) {
    yield* (await present(call, page.events)).filter((bounce) => isWanted(bounce, wanted));
    if (page.isLast) return;
  }
  throw tooMany('bounces');
}

function isWanted(
  bounce: Presented,
  { type, inactive, emailfilter, tag, messageid, messagestream: stream }: Filters,
): boolean {
  if (stream !== undefined && bounce.MessageStream !== stream) return false;
  if (type !== undefined && bounce.Type !== type) return false;
  if (inactive !== undefined && bounce.Inactive !== inactive) return false;
  if (emailfilter !== undefined && !bounce.Email.toLowerCase().includes(emailfilter)) return false;
  if (tag !== undefined && bounce.Tag !== tag) return false;
  return messageid === undefined || bounce.MessageID === messageid;
}

type Presented = Awaited<ReturnType<typeof present>>[number];

/** `Inactive`: the address is on the suppression list now. */
async function present({ db, orgId }: DialectCall, events: EventRecord[]) {
  const bounces = events.map(emailEventOf).map((email) => {
    const bounce = postmarkBounce(email);
    return { email, bounce, addressKey: compareKey(bounce.Email) };
  });
  const { suppressed } = await suppressedAmong(
    db,
    bounces.map(({ addressKey }) => ({ orgId, addressKey })),
  );
  return bounces.map(({ email, bounce, addressKey }) => {
    const isInactive = suppressed.has(suppressionKey(orgId, addressKey));
    return { ...bounce, DumpAvailable: email.attempt > 0, Inactive: isInactive, CanActivate: isInactive };
  });
}

async function find({ db, orgId, caller, params }: DialectCall): Promise<EventRecord> {
  const position = /^\d{1,15}$/.test(params.id!) ? Number(params.id) : 0;
  const page =
    position > 0
      ? await readEvents(db, { orgId, onlyTest: caller.isTest, after: position - 1, limit: 1 })
      : null;
  const event = page?.events.find((one) => one.position === position && types.includes(one.type));
  return requireItem(event ?? null, 'bounce');
}

/** The conversation that ended with the bounce; empty if there was none, or it is no longer kept. */
async function dump(call: DialectCall) {
  const { emailId, recipient, attempt } = emailEventOf(await find(call));
  const attempts = attempt > 0 ? await listAttempts(call.db, emailId, recipient) : [];
  const { transcript = [] } = attempts.find(({ number }) => number === attempt) ?? {};
  return { Body: transcript.map(({ from, text }) => `${marks[from]}${text}\r\n`).join('') };
}

const marks = { client: '> ', server: '< ', note: '' };

async function activate(call: DialectCall) {
  const event = await find(call);
  await unsuppress(call, emailEventOf(event).recipient);
  return { Message: 'OK', Bounce: (await present(call, [event]))[0] };
}

/** As far back as statistics are kept. */
const everSince = 0;

/** All that was refused counts as a hard bounce, and all that was given up as a soft one: the statistics have no reasons. */
async function deliveryStats({ db, orgId, caller }: DialectCall) {
  // Test mail is in no statistics, and suppresses nobody.
  const hours = caller.isTest ? [] : await readFigures(db, orgId, everSince);
  const sum = (name: 'bounced' | 'expired' | 'complained') =>
    hours.reduce((total, hour) => total + hour[name], 0);
  const [bounced, expired, complained] = [sum('bounced'), sum('expired'), sum('complained')];
  const Bounces = [
    { Name: 'All', Type: 'All', TypeCode: 0, Count: bounced + expired + complained },
    { ...postmarkBounces.hard, Count: bounced },
    { ...postmarkBounces.soft, Count: expired },
    { ...postmarkBounces.complaint, Count: complained },
  ];
  return {
    InactiveMails: caller.isTest ? 0 : await countSuppressions(db, orgId),
    Bounces: Bounces.filter(({ Type, Count }) => Type === 'All' || Count > 0).map(
      ({ Name, Type, TypeCode, Count }) => ({ Name, Type, TypeCode, Count }),
    ),
  };
}
