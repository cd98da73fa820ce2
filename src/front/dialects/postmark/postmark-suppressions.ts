/** Postmark's suppressions of a message stream, and its server. That of `outbound` is the list that stops all mail. */
import { z } from 'zod';
import type { SuppressionRecord } from '#accounts/rows/suppressions.ts';
import { originOf } from '#accounts/suppression-list.ts';
import type { DialectCall, DialectRoute } from '#front/dialects/dialect.ts';
import {
  findSuppressed,
  listSuppressed,
  suppress,
  unsuppress,
} from '#front/dialects/dialect-suppressions.ts';
import { smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { iso } from '#platform/base/clock.ts';
import { domainOf } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { fromDate, queryIn, toDate } from './postmark-query.ts';
import { streamOf } from './postmark-stream.ts';

const grant = 'full_access';
const path = '/message-streams/:stream/suppressions';

export const postmarkSuppressionRoutes: DialectRoute[] = [
  { route: `GET ${path}/dump`, grant, respond: list },
  { route: `POST ${path}`, grant, body: smallJson, respond: (call) => change(call, 'Suppressed') },
  { route: `POST ${path}/delete`, grant, body: smallJson, respond: (call) => change(call, 'Deleted') },
  { route: 'GET /server', grant: 'email:send', respond: async () => server },
];

const query = z.object({
  emailaddress: z.string().optional(),
  suppressionreason: z.enum(['HardBounce', 'SpamComplaint', 'ManualSuppression']).optional(),
  origin: z.enum(['Recipient', 'Customer', 'Admin']).optional(),
  fromdate: fromDate.optional(),
  todate: toDate.optional(),
});

const maxListed = 50_000;

/** Postmark lists them all in one answer. */
async function list(given: DialectCall) {
  const call = { ...given, stream: await streamOf(given, given.params.stream) };
  const wanted = checked(query, queryIn(call.context, Object.keys(query.shape)));
  const { emailaddress: address } = wanted;
  if (address !== undefined) {
    const one = await findSuppressed(call, address);
    return { Suppressions: one && isWanted(one, wanted) ? [present(one)] : [] };
  }
  const { found } = await listSuppressed(call, {
    limit: maxListed,
    origin: originWanted(wanted),
    createdFrom: wanted.fromdate,
    createdBefore: wanted.todate,
  });
  return { Suppressions: found.filter((one) => isWanted(one, wanted)).map(present) };
}

function isWanted(entry: SuppressionRecord, wanted: z.output<typeof query>): boolean {
  const { suppressionreason: reason, origin, fromdate: from, todate: to } = wanted;
  const { SuppressionReason, Origin } = present(entry);
  if ((reason && SuppressionReason !== reason) || (origin && Origin !== origin)) return false;
  return (from === undefined || entry.createdAt >= from) && (to === undefined || entry.createdAt < to);
}

/** Undefined: several. */
function originWanted({ suppressionreason: reason, origin }: z.output<typeof query>) {
  const named = (Object.keys(reasons) as (keyof typeof reasons)[]).find((one) => reasons[one] === reason);
  return named ?? (origin === 'Customer' ? 'manual' : undefined);
}

const reasons = { bounce: 'HardBounce', complaint: 'SpamComplaint', manual: 'ManualSuppression' } as const;

function present(entry: SuppressionRecord) {
  const SuppressionReason = reasons[originOf(entry)];
  const Origin = SuppressionReason === 'ManualSuppression' ? 'Customer' : 'Recipient';
  return { EmailAddress: entry.address, SuppressionReason, Origin, CreatedAt: iso(entry.createdAt) };
}

const maxChanged = 50;
const addresses = z.object({
  Suppressions: z.array(z.object({ EmailAddress: z.string().overwrite(trimBlanks) })).max(maxChanged),
});

/** Each address has a status of its own. */
async function change(given: DialectCall, Status: 'Suppressed' | 'Deleted') {
  const call = { ...given, stream: await streamOf(given, given.params.stream) };
  const Suppressions = [];
  for (const { EmailAddress } of checked(addresses, call.body).Suppressions) {
    const hidden = withoutHidden(EmailAddress);
    if (domainOf(EmailAddress) === null && !(hidden && Status === 'Deleted')) {
      Suppressions.push({
        EmailAddress,
        Status: 'Failed',
        Message: `This is not an email address${hidden}.`,
      });
      continue;
    }
    await (Status === 'Deleted' ? unsuppress : suppress)(call, EmailAddress);
    Suppressions.push({ EmailAddress, Status, Message: null });
  }
  return { Suppressions };
}

/** Clients read this to see whether their token is right. */
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
