/**
 * SendGrid's lists of suppressed addresses, and the global suppressions, which are all of ours. We suppress nobody whose address
 * is malformed or whose server blocked a mail, so those lists are empty.
 */
import { z } from 'zod';
import type { SuppressionRecord } from '#accounts/rows/suppressions.ts';
import { originOf } from '#accounts/suppression-list.ts';
import {
  type DialectCall,
  type DialectRoute,
  plainAddress,
  readParameters,
  requireItem,
} from '#front/dialects/dialect.ts';
import {
  bounceOf,
  findSuppressed,
  listSuppressed,
  suppress,
  unsuppress,
} from '#front/dialects/dialect-suppressions.ts';
import { jsonBody, noBody } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { domainOf } from '#platform/values/address.ts';
import { hasHidden, trimBlanks } from '#platform/values/hidden-characters.ts';
import { Refusal } from '#platform/values/refusal.ts';

type Origin = ReturnType<typeof originOf>;

const lists: Record<string, Origin | null> = {
  bounces: 'bounce',
  spam_reports: 'complaint',
  unsubscribes: 'manual',
  blocks: null,
  invalid_emails: null,
};

const grant = 'full_access';
/** A thousand addresses. */
const addressBody = jsonBody({ largest: 1024 * 1024, members: 3_000 });

export const sendgridSuppressionRoutes: DialectRoute[] = [
  ...Object.entries(lists).flatMap(([name, origin]) => listRoutes(`/v3/suppression/${name}`, origin)),
  { route: 'POST /v3/asm/suppressions/global', grant, body: addressBody, respond: add },
  { route: 'GET /v3/asm/suppressions/global/:email', grant, respond: getSuppression },
  { route: 'DELETE /v3/asm/suppressions/global/:email', grant, body: noBody, respond: removeAny },
];

function listRoutes(path: string, origin: Origin | null): DialectRoute[] {
  return [
    { route: `GET ${path}`, grant, respond: (call) => list(call, origin) },
    { route: `DELETE ${path}`, grant, body: addressBody, respond: (call) => removeSeveral(call, origin) },
    {
      route: `GET ${path}/:email`,
      grant,
      respond: async (call) => (await find(call, origin)).map(present),
    },
    { route: `DELETE ${path}/:email`, grant, body: noBody, respond: (call) => remove(call, origin) },
  ];
}

const maxLimit = 500;
const maxOffset = 10_000;
const maxEmails = 1000;

const count = z.coerce.number().int().min(0);
const listQuery = z.object({
  start_time: count.default(0),
  end_time: count.default(Number.MAX_SAFE_INTEGER),
  limit: count.min(1).max(maxLimit).default(maxLimit),
  offset: count.max(maxOffset).default(0),
});

/** The last time that there is (ECMA-262 section 21.4.1.1). */
const latest = 8.64e15;

/** In the order of the addresses. Pages are by number, so what is before one is read again. */
async function list(call: DialectCall, origin: Origin | null) {
  const { start_time: from, end_time: to, limit, offset } = readParameters(call.context, listQuery);
  if (origin === null) return [];
  const { found } = await listSuppressed(call, {
    limit: offset + limit,
    origin,
    createdFrom: Math.min(from * 1000, latest),
    createdBefore: Math.min((to + 1) * 1000, latest),
  });
  return found.slice(offset).map(present);
}

function present(entry: SuppressionRecord) {
  const { address: email, createdAt } = entry;
  const shown = { created: unixOf(createdAt), email };
  const origin = originOf(entry);
  if (origin === 'complaint') return { ...shown, ip: '' };
  if (origin === 'manual') return shown;
  const { text, status } = bounceOf(entry);
  return { ...shown, reason: text || entry.reason, status };
}

function unixOf(time: number): number {
  return Math.floor(time / 1000);
}

/** One entry, or none. */
async function find(call: DialectCall, origin: Origin | null, email = call.params.email!) {
  const found = await findSuppressed(call, requireAddress(email));
  return found && originOf(found) === origin ? [found] : [];
}

async function remove(call: DialectCall, origin: Origin | null) {
  const [found = null] = await find(call, origin);
  requireItem(found, 'address on this list');
  return removeAny(call);
}

const addresses = z.array(plainAddress).min(1).max(maxEmails);
const removal = z.object({
  delete_all: z
    .literal(false, { error: `Postern removes no whole list: give emails, at most ${maxEmails}` })
    .nullish(),
  emails: addresses,
});

async function removeSeveral(call: DialectCall, origin: Origin | null) {
  const { emails } = checked(removal, call.body);
  for (const email of emails) if ((await find(call, origin, email)).length > 0) await unsuppress(call, email);
  return empty(call);
}

async function add(call: DialectCall) {
  const { recipient_emails: emails } = checked(z.object({ recipient_emails: addresses }), call.body);
  for (const email of emails) await suppress(call, email);
  call.context.status = 201;
  return { recipient_emails: emails };
}

/** An empty object if the address is not on the list. */
async function getSuppression(call: DialectCall) {
  const found = await findSuppressed(call, requireAddress(call.params.email!));
  return found ? { recipient_email: found.address } : {};
}

async function removeAny(call: DialectCall) {
  await unsuppress(call, requireAddress(call.params.email!));
  return empty(call);
}

function empty({ context }: DialectCall): null {
  context.status = 204;
  return null;
}

function requireAddress(email: string): string {
  const address = trimBlanks(email);
  if (domainOf(address) !== null || hasHidden(address)) return address;
  throw new Refusal('BAD_REQUEST', `email: ${JSON.stringify(email.slice(0, 200))} is not an email address.`);
}
