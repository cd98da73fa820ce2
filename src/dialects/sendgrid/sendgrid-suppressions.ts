/**
 * SendGrid's bounces and global suppressions. We have one list: bounces are its entries of hard bounces, and the global
 * suppressions are all of it.
 */
import { z } from 'zod';
import { domainOf } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { check, type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import type { StoredSuppression } from '../dialect-store.ts';
import {
  findSuppressed,
  listSuppressed,
  originOf,
  suppress,
  suppressedAddress,
  unsuppress,
} from '../dialect-suppressions.ts';

const grant = 'full_access';

export const sendgridSuppressionRoutes: DialectRoute[] = [
  { route: 'GET /v3/suppression/bounces', grant, respond: listBounces },
  { route: 'DELETE /v3/suppression/bounces', grant, hasBody: true, respond: removeBounces },
  { route: 'GET /v3/suppression/bounces/:email', grant, respond: getBounce },
  { route: 'DELETE /v3/suppression/bounces/:email', grant, respond: removeBounce },
  { route: 'POST /v3/asm/suppressions/global', grant, hasBody: true, respond: add },
  { route: 'GET /v3/asm/suppressions/global/:email', grant, respond: getSuppression },
  { route: 'DELETE /v3/asm/suppressions/global/:email', grant, respond: remove },
];

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

/** In the order of the addresses. Pages are by number, so what is before one is read again. */
async function listBounces(call: DialectCall) {
  const query = check(listQuery, { ...call.context.query });
  const { found } = await listSuppressed(call, {
    limit: query.offset + query.limit,
    isWanted: (one) => isBounce(one) && isWithin(one, query),
  });
  return found.slice(query.offset).map(presentBounce);
}

const bounce = 'hard bounce: ';

/** Of the categories of hard bounces; the server's own status is with the email. */
const statuses: Record<string, string> = { unknown_user: '5.1.1', mailbox_disabled: '5.2.1', dns: '5.1.2' };

function isBounce(one: StoredSuppression): boolean {
  return originOf(one) === 'bounce';
}

function isWithin({ createdAt }: StoredSuppression, query: z.output<typeof listQuery>): boolean {
  const created = unixOf(createdAt);
  return created >= query.start_time && created <= query.end_time;
}

function presentBounce({ address: email, reason, createdAt }: StoredSuppression) {
  const status = statuses[reason.replace(bounce, '')] ?? '5.0.0';
  return { created: unixOf(createdAt), email, reason, status };
}

function unixOf(time: number): number {
  return Math.floor(time / 1000);
}

async function getBounce(call: DialectCall) {
  const found = await find(call, call.params.email!);
  return found && isBounce(found) ? [presentBounce(found)] : [];
}

async function removeBounce(call: DialectCall) {
  const found = await find(call, call.params.email!);
  requireItem(found && isBounce(found) ? found : null, 'bounce');
  return remove(call);
}

const addresses = z.array(suppressedAddress).min(1).max(maxEmails);
const removal = z.object({
  delete_all: z
    .literal(false, { error: `Postern removes no whole list: give emails, at most ${maxEmails}` })
    .nullish(),
  emails: addresses,
});

async function removeBounces(call: DialectCall) {
  const { emails } = check(removal, call.body);
  for (const email of emails) {
    const found = await find(call, email);
    if (found && isBounce(found)) await unsuppress(call, email);
  }
  return empty(call);
}

async function add(call: DialectCall) {
  const { recipient_emails: emails } = check(z.object({ recipient_emails: addresses }), call.body);
  for (const email of emails) await suppress(call, email);
  call.context.status = 201;
  return { recipient_emails: emails };
}

/** An empty object if the address is not on the list. */
async function getSuppression(call: DialectCall) {
  const found = await find(call, call.params.email!);
  return found ? { recipient_email: found.address } : {};
}

async function remove(call: DialectCall) {
  await unsuppress(call, requireAddress(call.params.email!));
  return empty(call);
}

function empty({ context }: DialectCall): null {
  context.status = 204;
  return null;
}

async function find(call: DialectCall, email: string): Promise<StoredSuppression | null> {
  return findSuppressed(call, requireAddress(email));
}

function requireAddress(email: string): string {
  if (domainOf(email) !== null) return email;
  throw new Refusal('BAD_REQUEST', `email: ${JSON.stringify(email.slice(0, 200))} is not an email address.`);
}
