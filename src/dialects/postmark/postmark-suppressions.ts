/** Postmark's suppressions of a message stream, and its server: ours is the organization's one list. */
import { z } from 'zod';
import { searchList, suppressAddress, unsuppressAddress } from '../../accounts/suppression-list.ts';
import { iso } from '../../base/clock.ts';
import { compareKey, domainOf } from '../../mail/address.ts';
import { check, type DialectCall, type DialectRoute } from '../dialect.ts';
import type { StoredSuppression } from '../dialect-store.ts';
import { fromDate, queryIn, toDate } from './postmark-query.ts';
import { checkStream } from './postmark-stream.ts';

const grant = 'full_access';
const path = '/message-streams/:stream/suppressions';

export const postmarkSuppressionRoutes: DialectRoute[] = [
  { route: `GET ${path}/dump`, grant, respond: list },
  { route: `POST ${path}`, grant, hasBody: true, respond: (call) => change(call, 'Suppressed') },
  { route: `POST ${path}/delete`, grant, hasBody: true, respond: (call) => change(call, 'Deleted') },
  { route: 'GET /server', grant: 'email:send', respond: async () => server },
];

const query = z.object({
  emailaddress: z.string().transform(compareKey).optional(),
  suppressionreason: z.enum(['HardBounce', 'SpamComplaint', 'ManualSuppression']).optional(),
  origin: z.enum(['Recipient', 'Customer', 'Admin']).optional(),
  fromdate: fromDate.optional(),
  todate: toDate.optional(),
});

const pageSize = 500;
const maxListed = 50_000;

/** Postmark lists them all in one answer. */
async function list(call: DialectCall) {
  checkStream(call.params.stream);
  const wanted = check(query, queryIn(call.context));
  const { orgId, management, store } = call;
  if (wanted.emailaddress !== undefined) {
    const one = await store.findSuppression(orgId, wanted.emailaddress);
    return { Suppressions: one === null ? [] : shown([one], wanted) };
  }
  const Suppressions = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof searchList>> = await searchList(management.db, '', {
      orgId,
      after,
      limit: pageSize,
    });
    Suppressions.push(...shown(page.found, wanted));
    after = page.next;
  } while (after !== null && Suppressions.length < maxListed);
  return { Suppressions };
}

function shown(list: StoredSuppression[], wanted: z.output<typeof query>) {
  const {
    suppressionreason: reason,
    origin,
    fromdate: from = 0,
    todate: to = Number.POSITIVE_INFINITY,
  } = wanted;
  return list
    .filter(({ createdAt }) => createdAt >= from && createdAt < to)
    .map(present)
    .filter((one) => (!reason || one.SuppressionReason === reason) && (!origin || one.Origin === origin));
}

function present({ address, reason, createdAt }: StoredSuppression) {
  const SuppressionReason = reason.startsWith('hard bounce')
    ? 'HardBounce'
    : reason === 'complaint'
      ? 'SpamComplaint'
      : 'ManualSuppression';
  const Origin = SuppressionReason === 'ManualSuppression' ? 'Customer' : 'Recipient';
  return { EmailAddress: address, SuppressionReason, Origin, CreatedAt: iso(createdAt) };
}

const maxChanged = 50;
const addresses = z.object({ Suppressions: z.array(z.object({ EmailAddress: z.string() })).max(maxChanged) });

/** Each address has a status of its own. */
async function change(call: DialectCall, Status: 'Suppressed' | 'Deleted') {
  checkStream(call.params.stream);
  const { orgId, now, management } = call;
  const { db, eventSignal } = management;
  const Suppressions = [];
  for (const { EmailAddress } of check(addresses, call.body).Suppressions) {
    if (domainOf(EmailAddress) === null) {
      Suppressions.push({ EmailAddress, Status: 'Failed', Message: 'This is not an email address.' });
      continue;
    }
    const changed = Status === 'Deleted' ? unsuppressAddress : suppressAddress;
    await changed({ db, eventSignal, orgId, now }, EmailAddress);
    Suppressions.push({ EmailAddress, Status, Message: null });
  }
  return { Suppressions };
}

/** What clients read to see whether their token is right. */
const server = {
  ID: 1,
  Name: 'Postern',
  ApiTokens: [],
  ServerLink: '',
  Color: 'blue',
  SmtpApiActivated: true,
  RawEmailEnabled: false,
  DeliveryType: 'Live',
  InboundAddress: '',
  InboundHash: '',
  InboundSpamThreshold: 0,
  PostFirstOpenOnly: false,
  TrackOpens: false,
  TrackLinks: 'None',
  IncludeBounceContentInHook: false,
  EnableSmtpApiErrorHooks: false,
};
