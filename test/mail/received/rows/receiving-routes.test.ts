/** Receiving routes in the database: their order, their owner, what is refused, and what becomes of them with their domain or webhook. */
import test, { type ExecutionContext } from 'ava';
import { makeOrganization } from '#accounts/create-organization.ts';
import { deleteDomain, insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { setDomainReceives } from '#accounts/rows/receiving-domains.ts';
import { kinds } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { checkAddress } from '#mail/received/check-address.ts';
import { addRoute, changeRoute, type RouteRequest } from '#mail/received/define-route.ts';
import { findRoute, listRoutes, routesOfDomain } from '#mail/received/rows/receiving-routes.ts';
import { deleteWebhook, insertWebhook } from '#mail/webhooks/rows/webhooks.ts';

async function start(t: ExecutionContext, kind: (typeof kinds)[number]) {
  const { db } = await openMigrated(t, kind);
  const dkim = { dkimSelector: 's', dkimPublicKey: '', dkimPrivateKey: '' };
  const organization = async (name: string, domain: string) => {
    const { id: orgId } = await makeOrganization(db, { name }, 1);
    const id = (await insertDomain(db, { orgId, name: domain, ...dkim }, 1))!;
    await setDomainStatus(db, id, 'verified', 1);
    await setDomainReceives(db, id, true);
    const webhook = { orgId, url: 'https://x.test/', types: [], format: 'standard' as const };
    const webhookId = await insertWebhook(db, { ...webhook, secret: '', publicKey: null }, 1);
    return { orgId, webhookId, domain: { id, orgId, name: domain } };
  };
  const ours = await organization('Ours', 'x.test');
  const theirs = await organization('Theirs', 'y.test');
  const add = (request: Partial<RouteRequest>, now = 1) =>
    addRoute(db, ours.orgId, { pattern: 'x.test', action: 'store', ...request }, now);
  const refusal = async (request: Partial<RouteRequest>) =>
    (await t.throwsAsync(add(request), { name: 'Refusal' }))!.message;
  return { db, ours, theirs, add, refusal };
}

for (const kind of kinds) {
  test(`${kind}: routes are asked by priority, then the oldest first, and are their owner's`, async (t) => {
    const { db, ours, theirs, add } = await start(t, kind);
    const all = await add({ pattern: 'X.TEST.' });
    t.like(all, { pattern: '*@x.test', domain: 'x.test', priority: 400, reply: null, dmarc: 'accept' });
    const first = await add({ pattern: 'a*@x.test', priority: 5, action: 'drop' });
    const second = await add({ pattern: 'ab@x.test', priority: 5, action: 'reject' });
    t.is(second.reply, '550 5.7.1 This address takes no mail');
    const ids = [first, second, all].map(({ id }) => id);
    t.deepEqual(
      (await routesOfDomain(db, ours.orgId, 'x.test')).map(({ id }) => id),
      ids,
    );
    t.deepEqual(await listRoutes(db, ours.orgId), [first, second, all]);
    t.deepEqual(await listRoutes(db, theirs.orgId), []);
    t.deepEqual(await findRoute(db, all.id, ours.orgId), all);
    t.is(await findRoute(db, all.id, theirs.orgId), null);
    const checked = async (orgId: string, address: string) => {
      const { result, route } = await checkAddress(db, orgId, address);
      return [result, route?.id ?? null];
    };
    t.deepEqual(await checked(ours.orgId, 'AB@x.test'), ['drop', first.id]);
    t.deepEqual(await checked(ours.orgId, 'b@x.test'), ['store', all.id]);
    t.deepEqual(await checked(theirs.orgId, 'b@x.test'), ['not_receiving', null]);
    t.deepEqual(await checked(theirs.orgId, 'b@y.test'), ['no_route', null]);
    t.deepEqual(await checked(ours.orgId, 'nothing'), ['not_receiving', null]);
  });

  test(`${kind}: a route names its organization's domain and webhook; more than fits is refused`, async (t) => {
    const { ours, theirs, add, refusal, db } = await start(t, kind);
    const webhook = { action: 'webhook' as const, webhookId: theirs.webhookId };
    t.regex(await refusal(webhook), /there is no such webhook in this organization/);
    t.regex(await refusal({ pattern: 'y.test' }), /y\.test is not registered in this organization/);
    t.regex(await refusal({ webhookId: ours.webhookId }), /only a route with the action webhook/);
    t.regex(await refusal({ reply: '550 No' }), /only a route with the action reject/);
    t.regex(await refusal({ action: 'reject', reply: '250 OK' }), /reply: give a reply such as/);
    t.regex(await refusal({ pattern: '/(/@x.test' }), /not an expression in RE2's syntax/);
    await add({ pattern: 'Orders@x.test' });
    t.regex(await refusal({ pattern: 'orders@X.test' }), /there is a route for Orders@x\.test already/);

    await add({ pattern: '/.{200}/@x.test' });
    t.regex(await refusal({ pattern: '/.{150}/@x.test' }), /have 20\d of at most 300 steps/);
    const { length } = await listRoutes(db, ours.orgId);
    for (let n = length; n < 200; n++) await add({ pattern: `a${n}@x.test` });
    t.regex(await refusal({}), /has 200 routes; remove one first/);
  });

  test(`${kind}: a change keeps what it does not name, and is refused as a whole`, async (t) => {
    const { db, ours, theirs, add } = await start(t, kind);
    const before = await add({
      action: 'webhook',
      webhookId: ours.webhookId,
      largest: 5000,
      dmarc: 'reject',
    });
    const change = (request: Partial<RouteRequest>) => changeRoute(db, before, request, 2);
    const other = await change({ priority: 7 });
    t.deepEqual(other, { ...before, priority: 7, updatedAt: 2 });
    t.deepEqual(await findRoute(db, before.id, null), other);
    await t.throwsAsync(change({ webhookId: theirs.webhookId }), { message: /no such webhook/ });
    await t.throwsAsync(change({ pattern: 'y.test', priority: 1 }), { message: /not registered/ });
    t.deepEqual(await findRoute(db, before.id, null), other);
    const rejected = await change({ action: 'reject' });
    t.like(rejected, { webhookId: null, reply: '550 5.7.1 This address takes no mail', largest: 5000 });
    const { id } = before;
    await t.throwsAsync(changeRoute(db, { id, orgId: theirs.orgId }, { priority: 1 }, 3), {
      message: /no such/,
    });
  });

  test(`${kind}: a route goes with its domain; without its webhook, it keeps its mail`, async (t) => {
    const { db, ours, theirs, add } = await start(t, kind);
    const theirRoute = await addRoute(db, theirs.orgId, { pattern: 'y.test', action: 'store' }, 1);
    const { id } = await add({ action: 'webhook', webhookId: ours.webhookId });
    const { id: toAll } = await add({ pattern: 'all@x.test', action: 'webhook' });
    await deleteWebhook(db, ours.webhookId);
    t.like(await findRoute(db, id, null), { action: 'store', webhookId: null });
    t.like(await findRoute(db, toAll, null), { action: 'webhook', webhookId: null });
    await deleteDomain(db, ours.domain);
    t.deepEqual(await listRoutes(db, ours.orgId), []);
    t.deepEqual(await listRoutes(db, theirs.orgId), [theirRoute]);
  });
}
