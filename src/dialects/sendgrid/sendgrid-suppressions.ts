/**
 * SendGrid's bounces and global suppressions. We have one list: bounces are its entries of hard bounces, and the global
 * suppressions are all of it.
 */
import { z } from 'zod';
import { searchList, suppressAddress, unsuppressAddress } from '../../accounts/suppression-list.ts';
import { compareKey, domainOf } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { check, type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import type { StoredSuppression } from '../dialect-store.ts';

const grant = 'full_access';

export const sendgridSuppressionRoutes: DialectRoute[] = [
  { route: 'GET /v3/suppression/bounces', grant, respond: listBounces },
  { route: 'DELETE /v3/suppression/bounces', grant, hasBody: true, respond: removeBounces },
  { route: 'GET /v3/suppression/bounces/:email', grant, respond: getBounce },
  { route: 'DELETE /v3/suppression/bounces/:email', grant, respond: removeBounce },
  { route: 'POST /v3/asm/suppressions/global', grant, hasBody: true, respond: suppress },
  { route: 'GET /v3/asm/suppressions/global/:email', grant, respond: getSuppression },
  { route: 'DELETE /v3/asm/suppressions/global/:email', grant, respond: unsuppress },
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
  const bounces: StoredSuppression[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof searchList>> = await searchList(call.management.db, '', {
      orgId: call.orgId,
      after,
      limit: maxLimit,
    });
    bounces.push(...page.found.filter((one) => isBounce(one) && isWithin(one, query)));
    after = page.next;
  } while (after !== null && bounces.length < query.offset + query.limit);
  return bounces.slice(query.offset, query.offset + query.limit).map(presentBounce);
}

const bounce = 'hard bounce: ';

/** Of the categories of hard bounces; the server's own status is with the email. */
const statuses: Record<string, string> = { unknown_user: '5.1.1', mailbox_disabled: '5.2.1', dns: '5.1.2' };

function isBounce({ reason }: StoredSuppression): boolean {
  return reason.startsWith(bounce);
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
  return unsuppress(call);
}

const address = z.string().refine((text) => domainOf(text) !== null, 'must be an email address');
const addresses = z.array(address).min(1).max(maxEmails);
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
    if (found && isBounce(found)) await unsuppressAddress(changeOf(call), email);
  }
  return empty(call);
}

async function suppress(call: DialectCall) {
  const { recipient_emails: emails } = check(z.object({ recipient_emails: addresses }), call.body);
  for (const email of emails) await suppressAddress(changeOf(call), email);
  call.context.status = 201;
  return { recipient_emails: emails };
}

/** An empty object if the address is not on the list. */
async function getSuppression(call: DialectCall) {
  const found = await find(call, call.params.email!);
  return found ? { recipient_email: found.address } : {};
}

async function unsuppress(call: DialectCall) {
  await unsuppressAddress(changeOf(call), requireAddress(call.params.email!));
  return empty(call);
}

function empty({ context }: DialectCall): null {
  context.status = 204;
  return null;
}

async function find({ store, orgId }: DialectCall, email: string): Promise<StoredSuppression | null> {
  return store.findSuppression(orgId, compareKey(requireAddress(email)));
}

function requireAddress(email: string): string {
  if (domainOf(email) !== null) return email;
  throw new Refusal('BAD_REQUEST', `email: ${JSON.stringify(email.slice(0, 200))} is not an email address.`);
}

function changeOf({ management: { db, eventSignal }, orgId, now }: DialectCall) {
  return { db, eventSignal, orgId, now };
}
